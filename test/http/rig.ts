// Shared by the tests of the server: a server with short timeouts, and clients that write any bytes to its socket.
import { Traces } from '../../src/observe/trace/spans.ts'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { openStore, Sluice, systemClock, type SluiceOptions, type Store } from '../../src/index.ts'
import type { ConnectionCounts } from '../../src/http/connections.ts'
import type { AnyListener } from '../../src/observe/emitter.ts'
import { RequestRouter } from '../../src/http/request-router.ts'
import { serve, type ListenOptions, type ServerBounds } from '../../src/http/server.ts'
import { BodyMemory } from '../../src/receive/body-budget.ts'
import { createDeclaredSource } from '../../src/receive/source-options.ts'
import { Intake } from '../../src/publish/intake.ts'
import { DecoderPool } from '../../src/receive/decompression.ts'
import { Receiver } from '../../src/receive/receiver.ts'
import { RefusedRequests } from '../../src/receive/refused-requests.ts'
import { github } from '../../src/sources/github.ts'
import { githubHeaders, SECRET, withGithub, type Hook } from '../receive/scene.ts'

/** Milliseconds. */
export const SHORT: ServerBounds = {
  headersTimeout: 1_000,
  requestTimeout: 1_500,
  keepAliveTimeout: 1_000,
  checkInterval: 20,
  maxConnections: 100,
}
/** How late a machine may be that is busy with other tests. */
const BUSY = 30_000
const NO_LIMIT = { rate: Infinity, per: 1_000 } as const

export interface Served {
  readonly url: string
  readonly port: number
  readonly store: Store
  readonly refused: RefusedRequests
  readonly connections: () => ConnectionCounts
}

const nobody = (): never => {
  throw new Error('This rig has no API.')
}

/** The whole path from the socket to the store, with bounds that users cannot set. */
export function impatient(options: ListenOptions = {}): Promise<Served> {
  return served({ listen: options, maxBody: 100_000, bounds: SHORT })
}

export interface Serving {
  readonly listen?: ListenOptions
  readonly maxBody?: number
  readonly compressed?: boolean
  readonly room?: BodyMemory
  readonly decoders?: DecoderPool
  readonly bounds?: ServerBounds
  readonly emit?: AnyListener
}

export async function served({ listen = {}, maxBody = 1_000_000, ...given }: Serving): Promise<Served> {
  const { room = new BodyMemory(), decoders = new DecoderPool(), compressed = false, bounds, emit } = given
  const store = await openStore('memory:')
  const refused = new RefusedRequests()
  const append: Intake['take'] = async (events) => {
    const routed = events.map((event) => ({ ...event, placements: [], unrouted: [] }))
    const { results } = await store.append({ routes: 1, events: routed })
    return results.map(({ kind }, at) => ({
      id: events[at]?.id ?? '',
      kind: kind === 'stored' ? kind : 'refused',
      of: undefined,
    }))
  }
  const receiver = new Receiver({
    clock: systemClock,
    now: () => systemClock.now(),
    intake: new Intake({ store: async (events) => (await append(events)) ?? [], maxEvents: 1_000, maxBytes: 1e7 }),
    refusedRequests: refused,
    readSecrets: async ({ source }) => (source.secrets === 'by-handshake' ? [] : source.secrets),
    saveSecret: async () => false,
    addressRate: NO_LIMIT,
    emit: () => {},
    bodyBudget: room,
    decoders,
  })
  receiver.declare(createDeclaredSource('github', github({ secret: SECRET }), { maxBody, compressed }))
  const inbound = new RequestRouter({
    receiver,
    clock: systemClock,
    routes: [],
    findUnreadyReason: async () => undefined,
    api: nobody,
    traces: new Traces(undefined),
  })
  const server = await serve(inbound, { port: 0, ...listen }, bounds, emit)
  const { url } = server
  onTestFinished(async () => {
    await server.close()
    await store.close()
  })
  return { url, port: Number(new URL(url).port), store, refused, connections: () => server.connections() }
}

export interface Listened {
  readonly app: Sluice
  readonly url: string
  readonly port: number
  readonly store: Store
  readonly connections: () => ConnectionCounts
  readonly close: () => Promise<void>
}

/** An app as a user would serve it, on a free port. */
export async function listening(
  options: ListenOptions = {},
  declare: (app: Sluice) => unknown = withGithub,
  more: Partial<SluiceOptions> = {},
): Promise<Listened> {
  const store = typeof more.store === 'object' ? more.store : await openStore('memory:')
  const app = new Sluice({ log: false, addressRate: NO_LIMIT, ...more, store })
  declare(app)
  const server = await app.listen({ port: 0, ...options })
  const { url } = server
  onTestFinished(async () => {
    await app.stop()
    await store.close()
  })
  const port = Number(new URL(url).port)
  return { app, url, port, store, connections: () => server.connections(), close: () => server.close() }
}

/** The response with all of its headers. */
const ANSWER = /HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/g

/** Checks after each turn of the event loop, because the awaited state changes in this process; fails after a timeout. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 2 * BUSY
  while (!isSo() && performance.now() < end) await new Promise((resolve) => setImmediate(resolve))
}

/** `Wire` is a connection to which the test writes byte by byte. */
export class Wire {
  readonly socket: Socket
  readonly began = performance.now()
  readonly closed: Promise<number>
  #text = ''
  #heard = Promise.withResolvers<void>()

  constructor(port: number, localAddress = '127.0.0.1') {
    this.socket = connect({ port, host: '127.0.0.1', localAddress })
    this.socket.setEncoding('latin1').on('data', (text: unknown) => {
      this.#text += String(text)
      this.#heard.resolve()
      this.#heard = Promise.withResolvers()
    })
    // Most tests wait until the server closes the connection.
    this.socket.on('error', () => {})
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve(performance.now() - this.began)))
    onTestFinished(() => void this.socket.destroy())
  }

  get text(): string {
    return this.#text
  }

  /** The status of the last response. */
  get status(): number {
    return Number([...this.#text.matchAll(ANSWER)].at(-1)?.[1] ?? 0)
  }

  write(text: string | Uint8Array): this {
    this.socket.write(text)
    return this
  }

  /** Writes this again and again until the other side no longer reads. */
  drip(text: string, every: number): this {
    const timer = setInterval(() => this.socket.write(text), every)
    void this.closed.then(() => clearInterval(timer))
    return this
  }

  /** Resolves after this many responses, or when the connection is closed. */
  async answers(n = 1): Promise<string> {
    const isOver = this.closed.then(() => true)
    while ([...this.#text.matchAll(ANSWER)].length < n) {
      if ((await Promise.race([this.#heard.promise, isOver])) === true) break
    }
    return this.#text
  }
}

/** A signed webhook as bytes on the wire. */
export function onTheWire(
  body: string | Uint8Array,
  { path = '/in/github', host = 'hooks.test', ...more }: WireHook = {},
): Buffer {
  const headers = { host, 'content-length': String(Buffer.byteLength(body)), ...githubHeaders(body, more) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body)])
}

export interface WireHook extends Omit<Hook, 'url'> {
  readonly path?: string
  readonly host?: string
}

export function hook(url: string, body: string, more: Hook = {}): Promise<Response> {
  return fetch(`${url}/in/github`, { method: 'POST', headers: githubHeaders(body, more), body })
}
