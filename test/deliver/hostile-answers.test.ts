// Tests hostile responses: each costs one attempt, at most one deadline, and little memory.
import { createServer, type Socket } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { PostResult } from '../../src/deliver/http/post.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { closing, listening, poster } from './listener.ts'

const KEPT = 16 * 1024
/** The size of the socket buffers of the system on both sides. */
const IN_BUFFERS = 32 * 1024 * 1024
const OK = 'HTTP/1.1 200 OK\r\n'

interface Attacked {
  readonly end: PostResult
  /** The bytes that Sluice and the system accepted from the attacker. */
  readonly sent: number
  readonly attempts: number
}

/** Sends the head and then the same bytes repeatedly, up to `most`. */
async function attacked(head: string, over: Buffer, most: number): Promise<Attacked> {
  let attempts = 0
  const closed = Promise.withResolvers<Socket>()
  const server = createServer((socket) => {
    attempts++
    socket.on('error', () => {}).on('close', () => closed.resolve(socket))
    socket.once('data', () => {
      socket.write(head)
      const pour = (): void => {
        while (!socket.destroyed && socket.bytesWritten < most) if (!socket.write(over)) return
        socket.end()
      }
      socket.on('drain', pour)
      pour()
    })
  })
  const port = await listening(server, '127.0.0.1')
  const end = await poster({ allowLoopback: true }).post({ url: `http://127.0.0.1:${port}/` })
  const { bytesWritten } = await closed.promise
  return { end, sent: bytesWritten, attempts }
}

const GIGABYTE = 2 ** 30

test.each([
  ['with a length', `content-length: ${GIGABYTE}\r\n\r\n`, Buffer.alloc(65_536, 'x')],
  ['in chunks', 'transfer-encoding: chunked\r\n\r\n', Buffer.from(`8000\r\n${'x'.repeat(0x80_00)}\r\n`)],
  ['until it hangs up', '\r\n', Buffer.alloc(65_536, 'x')],
])('a gigabyte %s: 16 KB are kept, and the connection is closed', async (_, head, over) => {
  const { end, sent, attempts } = await attacked(OK + head, over, GIGABYTE)
  expect(end).toMatchObject({ kind: 'answered', status: 200, isComplete: false })
  expect(end.kind === 'answered' && end.body.equals(Buffer.alloc(KEPT, 'x'))).toBe(true)
  expect(sent).toBeLessThan(IN_BUFFERS)
  expect(attempts).toBe(1)
})

test.each([
  ['gzip', gzipSync(Buffer.alloc(64 * 1024 * 1024))],
  ['br', brotliCompressSync(Buffer.alloc(64 * 1024 * 1024))],
])('a compressed bomb (%s) is not decompressed', async (encoding, bomb) => {
  const head = `content-encoding: ${encoding}\r\ncontent-length: ${bomb.length}\r\n\r\n`
  const { end } = await attacked(OK + head, bomb, bomb.length)
  expect(end).toMatchObject({ kind: 'answered', status: 200, isComplete: bomb.length <= KEPT })
  expect(end.kind === 'answered' && end.body.equals(bomb.subarray(0, KEPT))).toBe(true)
})

test.each([
  ['of many headers', Buffer.from(`x-${'a'.repeat(50)}: ${'b'.repeat(50)}\r\n`.repeat(100))],
  ['of one header', Buffer.alloc(65_536, 'x')],
])('a flood %s ends at 16 KB', async (_, over) => {
  const { end, sent, attempts } = await attacked(`${OK}x: `, over, GIGABYTE)
  expect(end).toMatchObject({ kind: 'failed', why: 'malformed' })
  expect(sent).toBeLessThan(IN_BUFFERS)
  expect(attempts).toBe(1)
})

/** Sends one more byte per step, too often for an idle timeout, and never the last one. */
async function dripped(head: string, drip: string): Promise<{ readonly end: PostResult; readonly attempts: number }> {
  const clock = new VirtualClock()
  let attempts = 0
  const came = Promise.withResolvers<Socket>()
  const server = createServer((socket) => {
    attempts++
    socket.on('error', () => {})
    socket.once('data', () => came.resolve(socket.resume()))
  })
  const port = await listening(server, '127.0.0.1')
  const posting = poster({ allowLoopback: true, clock }).post({ url: `http://127.0.0.1:${port}/` })
  const socket = await came.promise
  const closed = closing(socket)
  socket.write(head)
  for (let second = 0; second < 30; second++) {
    await new Promise<void>((resolve) => void socket.write(drip, () => resolve()))
    clock.advance(1_000)
  }
  const end = await posting
  await closed
  return { end, attempts }
}

test.each([
  ['in the body', `${OK}content-length: 1000000\r\n\r\n`, 'x'],
  ['of chunks', `${OK}transfer-encoding: chunked\r\n\r\n`, '1\r\nx\r\n'],
  ['in the head', `${OK}x-drip: `, 'x'],
  ['of answers that say to wait', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
])('a slow response %s ends at the deadline', async (_, head, drip) => {
  const { end, attempts } = await dripped(head, drip)
  expect(end).toMatchObject({ kind: 'failed', why: 'timeout', ms: 30_000 })
  expect(attempts).toBe(1)
})

test('a flood of 1xx responses ends at the deadline too', async () => {
  const clock = new VirtualClock()
  const flooded = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(1_000))
    const pour = (): void => {
      for (;;) {
        if (socket.bytesWritten > 5_000_000) flooded.resolve()
        if (socket.destroyed || !socket.write(hints)) return
      }
    }
    socket
      .on('error', () => {})
      .on('drain', pour)
      .once('data', pour)
  })
  const port = await listening(server, '127.0.0.1')
  const posting = poster({ allowLoopback: true, clock }).post({ url: `http://127.0.0.1:${port}/` })
  await flooded.promise
  clock.advance(30_000)
  expect(await posting).toMatchObject({ kind: 'failed', why: 'timeout' })
})
