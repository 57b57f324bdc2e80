// The server: Fastify, bounded in everything that a stranger can make long, and nothing of a request believed that a
// proxy is not listed for.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { AnyListener } from '../observe/events.ts'
import { problemAnswer } from '../receive/problem.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'
import { answerBroken, routeFailed } from './broken-request.ts'
import { Connections, type ConnectionCounts } from './connections.ts'
import { isStream, type Inbound } from './inbound.ts'
import { nodeBody } from './node-body.ts'
import { headOf, webRequest } from './node-request.ts'
import { addSourceShortcut } from './source-shortcut.ts'
import { trustedProxies, type IsTrusted } from './trusted-proxies.ts'

export interface ListenOptions {
  /** `PORT` of the environment, or 8787. 0: any that is free. */
  readonly port?: number
  /** Loopback unless said, and as `localhost`: `0.0.0.0` for the world. */
  readonly host?: string
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer }
  /** Addresses and networks whose forwarded headers are believed. */
  readonly trustProxy?: readonly string[]
  /** Open at a time; further ones are closed unread. 1,000 unless said. A proxy that is trusted may have any number. */
  readonly connectionsPerAddress?: number
}

export interface Listening {
  readonly url: string
  connections(): ConnectionCounts
  /** Takes in nothing more; what has arrived is answered. */
  close(): Promise<void>
}

/** How long senders may take, in ms, and how many connections there may be. */
export interface ServerBounds {
  readonly headersWithin: number
  readonly requestWithin: number
  readonly keptAliveFor: number
  /** Who is too slow is found at the next look. */
  readonly lookedEvery: number
  /** Of all addresses together. */
  readonly connections: number
}

const BOUNDS: ServerBounds = {
  headersWithin: 10_000,
  requestWithin: 30_000,
  keptAliveFor: 72_000,
  lookedEvery: 1_000,
  connections: 10_000,
}

const KNOWN: ReadonlySet<string> = new Set<keyof ListenOptions>([
  'port',
  'host',
  'tls',
  'trustProxy',
  'connectionsPerAddress',
])
const PORT = 8787
const HOST = '127.0.0.1'
const HEADERS_MAX = 16 * 1024
const CONNECTIONS_PER_ADDRESS = 1_000

export async function serve(
  inbound: Inbound,
  options: ListenOptions,
  bounds: ServerBounds = BOUNDS,
  emit: AnyListener = () => {},
): Promise<Listening> {
  onlyKnown(options, KNOWN, 'listen: ')
  const port = portOf(options.port)
  const isTrusted = trustedProxies(options.trustProxy)
  const connections = new Connections({ most: mostOf(options.connectionsPerAddress), isTrusted, emit })
  // With a proxy listed, who is on the machine itself and who came through cannot be told apart.
  const serving = { inbound, isDirect: (options.trustProxy ?? []).length === 0, isClosing: false }
  const server = await serverFor(serving, fastifyOptions(options, isTrusted, bounds))
  server.server.maxConnections = bounds.connections
  connections.guard(server.server)
  if (serving.isDirect) addSourceShortcut(server.server, { inbound, isClosing: () => serving.isClosing })
  try {
    // For that name the framework would open a second server, which nothing here bounds.
    const host = options.host === 'localhost' ? HOST : options.host
    const url = await server.listen({ port, host: host ?? HOST, backlog: 4_096 })
    return { url, connections: () => connections.counts, close: () => server.close() }
  } catch (error) {
    await server.close()
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('LISTEN_FAILED', `Port ${port} of ${options.host ?? HOST} cannot be had: ${why}.`, error)
  }
}

async function serverFor(serving: Serving, options: object): Promise<FastifyInstance> {
  // Only who listens needs it.
  const { fastify } = await import('fastify')
  const handle = (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => handled(serving, request, reply)
  const clientErrorHandler = (error: Error, socket: Socket): void =>
    answerBroken(error, socket, (problem, address) => serving.inbound.broken(problem, address))
  const server = configured(() => fastify({ ...options, clientErrorHandler, frameworkErrors: failing(handle) }))
  server.addHook('preClose', (done) => {
    serving.isClosing = true
    done()
  })
  // Before anything of the framework looks at the content type or the body: the source does, when it knows who sent it.
  server.addHook('onRequest', handle)
  server.setNotFoundHandler((_request, reply) => reply.send())
  server.setErrorHandler((error, _request, reply) => sending(problemAnswer(routeFailed(error)))(reply))
  return server
}

/** A path that the framework cannot read is one that no source has. */
function failing(handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) {
  return (_error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    handle(request, reply).catch((error: unknown) => sending(problemAnswer(routeFailed(error)))(reply))
  }
}

type Send = (reply: FastifyReply) => FastifyReply

function sending({ status, headers = {}, body }: SourceAnswer): Send {
  return (reply) => reply.code(status).headers(headers).send(body)
}

function sendingOwn(response: Response): Send {
  return (reply) => reply.send(response)
}

function fastifyOptions({ tls, trustProxy = [] }: ListenOptions, isTrusted: IsTrusted, bounds: ServerBounds): object {
  const { headersWithin, requestWithin, keptAliveFor, lookedEvery } = bounds
  const limits = {
    maxHeaderSize: HEADERS_MAX,
    // Node keeps the first of two authorization headers, a proxy may have looked at the other: joined, neither passes.
    joinDuplicateHeaders: true,
    headersTimeout: headersWithin,
    requestTimeout: requestWithin,
    connectionsCheckingInterval: lookedEvery,
  }
  return {
    // Who lists none pays nothing for it.
    trustProxy: trustProxy.length > 0 && isTrusted,
    requestTimeout: requestWithin,
    keepAliveTimeout: keptAliveFor,
    forceCloseConnections: 'idle',
    // The app itself knows what it answers while it stops.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    ...(tls === undefined ? { http: limits } : { https: { ...limits, handshakeTimeout: headersWithin, ...tls } }),
  }
}

/** Keys and certificates are looked at here for the first time. */
function configured(make: () => FastifyInstance): FastifyInstance {
  try {
    return make()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('CONFIG_INVALID', `listen: tls cannot be used: ${why}.`, error)
  }
}

interface Serving {
  readonly inbound: Inbound
  readonly isDirect: boolean
  isClosing: boolean
}

async function handled(serving: Serving, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const head = headOf(request)
  const send = await sendingFor(serving, request, head)
  // Whoever is kept alive would keep the server from closing.
  if (serving.isClosing) void reply.header('connection', 'close')
  return send(reply)
}

async function sendingFor(serving: Serving, request: FastifyRequest, head: RequestHead): Promise<Send> {
  const { inbound } = serving
  // Proxies speak 1.0 unless told otherwise, and may add nothing else that tells of them.
  const isDirect = serving.isDirect && request.raw.httpVersion === '1.1'
  const own = inbound.ownRoute(head.method, head.url.pathname)
  if (own !== undefined) {
    return sendingOwn(await own.handle(webRequest(request, head), { address: head.address }))
  }
  if (isStream(head)) return sendingOwn(await inbound.stream(head, { isDirect }))
  return sending(await inbound.answer(head, { isDirect }, nodeBody(request.raw)))
}

function portOf(given: number | undefined): number {
  // One that is set to nothing is not set.
  const port = given ?? Number(process.env['PORT']?.trim() || PORT)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw new SluiceError('CONFIG_INVALID', `listen: port is ${port}; it is a number from 0 to 65535.`)
}

function mostOf(given: number = CONNECTIONS_PER_ADDRESS): number {
  if (given === Infinity || (Number.isInteger(given) && given > 0)) return given
  const what = `connectionsPerAddress is ${given}; it is a whole number from 1, or Infinity.`
  throw new SluiceError('CONFIG_INVALID', `listen: ${what}`)
}
