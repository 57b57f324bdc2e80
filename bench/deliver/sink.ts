// The receiver of the deliver bench: a process of its own that reads each POST to its end, responds with 200, and counts. It
// checks every thousandth signature. It sends its port to the parent, and its count when the parent asks.
import { createHmac } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { KEY_BYTES } from './posts.ts'

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const CHECKED_EVERY = 1_000

export interface Counted {
  readonly posts: number
  readonly checked: number
  readonly wrong: number
}

let posts = 0
let checked = 0
let wrong = 0

function isSigned(head: string, body: Buffer): boolean {
  const header = (name: string): string => new RegExp(`\\r\\n${name}: (.*)`, 'i').exec(head)?.[1]?.trim() ?? ''
  const hmac = createHmac('sha256', KEY_BYTES).update(`${header('webhook-id')}.${header('webhook-timestamp')}.`)
  return header('webhook-signature') === `v1,${hmac.update(body).digest('base64')}`
}

/** The bytes after the last complete request. */
function taken(read: Buffer, socket: Socket): Buffer {
  let left = read
  for (;;) {
    const end = left.indexOf(HEAD_END)
    if (end < 0) return left
    const head = left.toString('latin1', 0, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const next = end + HEAD_END.length + length
    if (left.length < next) return left
    posts++
    if (posts % CHECKED_EVERY === 1) {
      checked++
      if (!isSigned(head, left.subarray(end + HEAD_END.length, next))) wrong++
    }
    socket.write(ANSWER)
    left = left.subarray(next)
  }
}

const server = createServer((socket) => {
  let read: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => {
    read = taken(read.length === 0 ? chunk : Buffer.concat([read, chunk]), socket)
  })
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address !== null ? address.port : 0 })
})
process.once('disconnect', () => process.exit())
process.on('message', () => {
  const counted: Counted = { posts, checked, wrong }
  process.send?.(counted)
})
