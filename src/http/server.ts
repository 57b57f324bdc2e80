// `serve` starts the server: Fastify with bounds on everything a stranger can make large. It trusts forwarded headers
// only from configured proxies.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { SluiceError } from '../errors.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { toProblemResponse } from '../receive/problem.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceResponse } from '../receive/source.ts'
import { rejectBrokenRequest, toRouteProblem } from './broken-request.ts'
import { ConnectionLimiter, type ConnectionCounts } from './connections.ts'
import { isStreamRequest } from './admin-api.ts'
import type { RequestRouter } from './request-router.ts'
import { createNodeBodyReader, targetFault, toRequestHead, toWebRequest } from './node-request.ts'
import { addSourceShortcut } from './source-shortcut.ts'
import { trustedProxies, type IsTrusted } from './trusted-proxies.ts'

export interface ListenOptions {
  /** The default is `PORT` of the environment, or 8787. 0 picks any free port. */
  readonly port?: number
  /** The default is 127.0.0.1, also for `localhost`. Use `0.0.0.0` to accept connections from other machines. */
  readonly host?: string
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer }
  /** Addresses and networks whose forwarded headers are trusted. */
  readonly trustProxy?: readonly string[]
  /** The most open connections of one address; further ones are closed unread. The default is 1,000. A trusted proxy
      is not bounded. */
  readonly connectionsPerAddress?: number
}

export interface Listening {
  readonly url: string
  connections(): ConnectionCounts
  /** `close` accepts nothing more, and responds to what has arrived. */
  close(): Promise<void>
}

/** `ServerBounds` says how long senders may take, in ms, and how many connections may be open. */
export interface ServerBounds {
  readonly headersTimeout: number
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  /** How often Node looks for connections that are too slow. */
  readonly checkInterval: number
  /** The bound for all addresses together. */
  readonly maxConnections: number
}

const BOUNDS: ServerBounds = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  checkInterval: 1_000,
  maxConnections: 10_000,
}

const PORT = 8787
const HOST = '127.0.0.1'
const HEADERS_MAX = 16 * 1024
const CONNECTIONS_PER_ADDRESS = 1_000

export async function serve(
  inbound: RequestRouter,
  options: ListenOptions,
  bounds: ServerBounds = BOUNDS,
  emit: AnyListener = () => {},
): Promise<Listening> {
  assertKnownOptions(options, ['port', 'host', 'tls', 'trustProxy', 'connectionsPerAddress'], 'listen: ')
  const port = parsePort(options.port)
  const isTrusted = trustedProxies(options.trustProxy)
  const connections = new ConnectionLimiter({
    maxPerAddress: parseConnectionsPerAddress(options.connectionsPerAddress),
    total: bounds.maxConnections,
    isTrusted,
    emit,
  })
  // With a trusted proxy configured, local requests and proxied requests cannot be told apart.
  const serving = { inbound, isDirect: (options.trustProxy ?? []).length === 0, isClosing: false }
  const server = await createServer(serving, fastifyOptions(options, isTrusted, bounds))
  connections.guard(server.server)
  if (serving.isDirect) addSourceShortcut(server.server, { router: inbound, isClosing: () => serving.isClosing })
  connections.follow(server.server)
  try {
    // For `localhost`, Fastify would open a second server that these bounds do not cover.
    const host = options.host === 'localhost' ? HOST : options.host
    const url = await server.listen({ port, host: host ?? HOST, backlog: 4_096 })
    return { url, connections: () => connections.counts, close: () => server.close() }
  } catch (error) {
    await server.close()
    const where = `port ${port} of ${options.host ?? HOST}`
    throw new SluiceError('LISTEN_FAILED', `Cannot listen on ${where}: ${describeListenError(error)}.`, error)
  }
}

function describeListenError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return 'another process uses it'
  if (code === 'EACCES') return 'the process may not use it'
  return message
}

async function createServer(serving: ServerState, options: object): Promise<FastifyInstance> {
  // Loaded here, because only `listen` needs it.
  const { fastify } = await import('fastify')
  const handle = (request: FastifyRequest, reply: FastifyReply): Promise<unknown> =>
    handleRequest(serving, request, reply)
  const clientErrorHandler = (error: Error, socket: Socket): void =>
    rejectBrokenRequest(error, socket, (problem, address) => serving.inbound.reportBroken(problem, address))
  const server = withConfigError(() =>
    fastify({ ...options, clientErrorHandler, frameworkErrors: createErrorHandler(handle) }),
  )
  server.addHook('preClose', (done) => {
    serving.isClosing = true
    done()
  })
  // The hook runs before Fastify reads the content type or the body: the source does that after it knows the sender.
  server.addHook('onRequest', handle)
  server.setNotFoundHandler((_request, reply) => reply.send())
  server.setErrorHandler((error, _request, reply) => toSend(toProblemResponse(toRouteProblem(error)))(reply))
  return server
}

/** A path that Fastify cannot parse belongs to no source. */
function createErrorHandler(handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) {
  return (_error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    handle(request, reply).catch((error: unknown) => toSend(toProblemResponse(toRouteProblem(error)))(reply))
  }
}

type SendReply = (reply: FastifyReply) => FastifyReply

function toSend({ status, headers = {}, body }: SourceResponse): SendReply {
  return (reply) => reply.code(status).headers(headers).send(body)
}

function toSendWebResponse(response: Response): SendReply {
  return (reply) => reply.send(response)
}

function fastifyOptions({ tls, trustProxy = [] }: ListenOptions, isTrusted: IsTrusted, bounds: ServerBounds): object {
  const { headersTimeout, requestTimeout, keepAliveTimeout, checkInterval } = bounds
  const limits = {
    maxHeaderSize: HEADERS_MAX,
    // Of two authorization headers, Node keeps the first, and a proxy may have checked the other. Joined, neither
    // passes.
    joinDuplicateHeaders: true,
    headersTimeout,
    requestTimeout,
    connectionsCheckingInterval: checkInterval,
  }
  return {
    // Without proxies, the check is off and costs nothing.
    trustProxy: trustProxy.length > 0 && isTrusted,
    requestTimeout,
    keepAliveTimeout,
    forceCloseConnections: 'idle',
    // The app itself decides its responses while it stops.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    ...(tls === undefined ? { http: limits } : { https: { ...limits, handshakeTimeout: headersTimeout, ...tls } }),
  }
}

/** Fastify is the first to read keys and certificates here. */
function withConfigError(make: () => FastifyInstance): FastifyInstance {
  try {
    return make()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('CONFIG_INVALID', `listen: tls must be valid: ${why}.`, error)
  }
}

interface ServerState {
  readonly inbound: RequestRouter
  readonly isDirect: boolean
  isClosing: boolean
}

async function handleRequest(serving: ServerState, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const head = toRequestHead(request)
  const send = await respondTo(serving, request, head)
  // A kept-alive connection would keep the server from closing.
  if (serving.isClosing) void reply.header('connection', 'close')
  return send(reply)
}

async function respondTo(serving: ServerState, request: FastifyRequest, head: RequestHead): Promise<SendReply> {
  const { inbound } = serving
  const fault = targetFault(request.originalUrl)
  if (fault !== undefined) return toSend(inbound.refuse(fault, head))
  // Proxies use HTTP/1.0 by default, and may send nothing else that reveals them.
  const isDirect = serving.isDirect && request.raw.httpVersion === '1.1'
  const own = inbound.findAppRoute(head.method, head.url.pathname)
  if (own !== undefined) {
    const arrival = { head, connection: { isDirect }, context: { address: head.address } }
    return toSendWebResponse(await inbound.callAppRoute(own, toWebRequest(request, head), arrival))
  }
  if (isStreamRequest(head)) return toSendWebResponse(await inbound.stream(head, { isDirect }))
  if (inbound.isDashboardRequest(head)) {
    return toSendWebResponse(await inbound.showDashboard(head, { isDirect }, createNodeBodyReader(request.raw)))
  }
  const { localAddress = '', localPort = 0 } = request.raw.socket
  return toSend(
    await inbound.handle(
      head,
      { isDirect, local: { address: localAddress, port: localPort } },
      createNodeBodyReader(request.raw),
    ),
  )
}

function parsePort(value: number | undefined): number {
  // An empty variable counts as unset.
  const port = value ?? Number(process.env['PORT']?.trim() || PORT)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw invalidOption(`listen: port must be a whole number from 0 to 65535; got ${port}.`)
}

function parseConnectionsPerAddress(value: number = CONNECTIONS_PER_ADDRESS): number {
  if (value === Infinity || (Number.isInteger(value) && value > 0)) return value
  throw invalidOption(`listen: connectionsPerAddress must be a whole number from 1, or Infinity; got ${value}.`)
}
