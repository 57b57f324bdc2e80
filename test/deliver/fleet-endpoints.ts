// Runs the endpoints of the fleet in a process that is never killed. Each responds by its behaviour and logs one line
// per POST. Argument: the log file. The process prints its port, and accepts the commands `calm` and `wild`.
import { createHmac } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Witnessed } from './fleet-check.ts'
import { FLEET, isChokedOn, SECRET, type Behaviour } from './fleet-plan.ts'

/** A log entry with the additional fields for the measurement. */
export interface Written extends Witnessed {
  /** The time from the publication of the batch's oldest event to its arrival. */
  readonly latency: number
}

interface Came {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The number of earlier POSTs to this endpoint. */
  readonly before: number
  readonly batch: string
  readonly events: readonly string[]
}

type End = Pick<Witnessed, 'end' | 'has'>

const [file = ''] = process.argv.slice(2)
const out = createWriteStream(file)
const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
const counts = FLEET.map(() => 0)
let isCalm = false

const parts = new Map<string, readonly string[]>()
const REFUSED: End = { end: 'refused', has: [] }
const FAILS = { every: 20, times: 6 }
const BUSY_EVERY = 8
const SILENT_EVERY = 12
const HANGS_UP_EVERY = 6
const PART_EVERY = 3

/** What each behaviour does. It returns which events the endpoint has and whether the sender received the response. */
const ANSWERS: Readonly<Record<Behaviour, (came: Came) => Promise<End>>> = {
  healthy: taking,
  fails: async (came) => (came.before % FAILS.every < FAILS.times ? refusing(came, 500) : taking(came)),
  busy: async (came) => (came.before % BUSY_EVERY === 0 ? refusing(came, 429) : taking(came)),
  silent: async (came) => {
    if (came.before % SILENT_EVERY !== 1) return taking(came)
    await closed(came.response)
    return { end: 'cut-off', has: came.events }
  },
  'hangs-up': async (came) => {
    if (came.before % HANGS_UP_EVERY !== 1) return taking(came)
    came.request.socket.destroy()
    const hasIt = came.before % (2 * HANGS_UP_EVERY) === 1
    return hasIt ? { end: 'cut-off', has: came.events } : REFUSED
  },
  'takes-part': async (came) => {
    const { events, batch } = came
    const most = came.before % PART_EVERY === 1 ? Math.ceil(events.length / 2) : events.length
    // The response to a repeated batch is the same, found by its id.
    const accepted = parts.get(batch) ?? events.slice(0, most)
    parts.set(batch, accepted)
    const { end } = await answered(came, 200, JSON.stringify({ accepted }))
    return { end, has: accepted }
  },
  chokes: async (came) => (came.events.some(isChokedOn) ? refusing(came, 500) : taking(came)),
}

function taking(came: Came): Promise<End> {
  return answered(came, 200, '')
}

async function refusing(came: Came, status: 429 | 500): Promise<End> {
  if (status === 429) came.response.setHeader('retry-after', '1')
  await answered(came, status, '')
  return REFUSED
}

/** Whether the response was sent completely; the sender may be dead by now. */
async function answered({ response, events }: Came, status: number, body: string): Promise<End> {
  response.writeHead(status).end(body)
  await closed(response)
  return { end: response.writableFinished ? 'taken' : 'cut-off', has: events }
}

function closed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.closed) resolve()
    else response.once('close', () => resolve())
  })
}

function isSigned({ headers }: IncomingMessage, body: Buffer): boolean {
  const [id, time] = [String(headers['webhook-id']), String(headers['webhook-timestamp'])]
  const hmac = createHmac('sha256', key).update(`${id}.${time}.`).update(body)
  return headers['webhook-signature'] === `v1,${hmac.digest('base64')}`
}

interface Batch {
  readonly data: { readonly events: readonly { readonly id: string; readonly time: string }[] }
}

async function witness(request: IncomingMessage, response: ServerResponse): Promise<void> {
  open.get(request.socket)?.(undefined)
  const endpoint = Number(request.url?.slice(1))
  const body = await buffer(request)
  const at = Date.now()
  const { events } = (JSON.parse(body.toString()) as Batch).data
  const ids = events.map(({ id }) => id)
  const oldest = Math.min(...events.map(({ time }) => Date.parse(time)))
  const batch = String(request.headers['webhook-id'])
  const came = { request, response, before: counts[endpoint] ?? 0, batch, events: ids }
  counts[endpoint] = came.before + 1
  const behaviour = isCalm ? 'healthy' : (FLEET[endpoint]?.behaviour ?? 'healthy')
  const end = await ANSWERS[behaviour](came)
  const post = { endpoint, batch, events: ids, at, until: Date.now(), ...end }
  const by = String(request.headers['user-agent'])
  const written: Written = { ...post, isSigned: isSigned(request, body), by, latency: at - oldest }
  const { socket } = request
  const write = (left: number | undefined): void => {
    if (open.get(socket) !== write) return
    open.delete(socket)
    out.write(`${JSON.stringify({ ...written, ...(left !== undefined && { left }) })}\n`)
  }
  open.set(socket, write)
  if (socket.destroyed) write(post.until)
  else socket.once('close', () => write(Date.now()))
}

/** Of each open connection, writes the log entry of its last POST: until the next one, its sender may still leave. */
const open = new Map<Socket, (left: number | undefined) => void>()

const server = createServer((request, response) => {
  // A request of a killed worker that did not arrive completely does not count.
  witness(request, response).catch(() => {})
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address !== null ? address.port : 0 })
})
process.once('disconnect', () => process.exit())
process.on('message', (what) => {
  if (what === 'end') {
    for (const write of open.values()) write(undefined)
    out.end(() => process.exit())
  } else isCalm = what === 'calm'
})
