// The server: Fastify, bounded in everything that a stranger can make long, and nothing of a request believed that a
// proxy is not listed for.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import { problemAnswer } from '../receive/problem.ts'
import type { RequestHead } from '../receive/receiver.ts'
import type { SourceAnswer } from '../receive/source.ts'
import { answerBroken, routeFailed } from './broken-request.ts'
import type { Inbound } from './inbound.ts'
import { nodeBody } from './node-body.ts'

export interface ListenOptions {
  /** `PORT` of the environment, or 8787. 0: any that is free. */
  readonly port?: number
  /** Loopback unless said: `0.0.0.0` for the world. */
  readonly host?: string
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer }
  /** Addresses and networks whose forwarded headers are believed. */
  readonly trustProxy?: readonly string[]
}

export interface Listening {
  readonly url: string
  /** Takes in nothing more; what has arrived is answered. */
  close(): Promise<void>
}

/** How long senders may take, in ms. */
export interface ServerBounds {
  readonly headersWithin: number
  readonly requestWithin: number
  readonly keptAliveFor: number
  /** Who is too slow is found at the next look. */
  readonly lookedEvery: number
}

const BOUNDS: ServerBounds = {
  headersWithin: 10_000,
  requestWithin: 30_000,
  keptAliveFor: 72_000,
  lookedEvery: 1_000,
}

const KNOWN: ReadonlySet<string> = new Set<keyof ListenOptions>(['port', 'host', 'tls', 'trustProxy'])
const PORT = 8787
const HOST = '127.0.0.1'
const HEADERS_MAX = 16 * 1024
const CONNECTIONS_MAX = 10_000

export async function serve(
  inbound: Inbound,
  options: ListenOptions,
  bounds: ServerBounds = BOUNDS,
): Promise<Listening> {
  onlyKnown(options, KNOWN, 'listen: ')
  const port = portOf(options.port)
  const server = await serverFor(inbound, options, bounds)
  try {
    const url = await server.listen({ port, host: options.host ?? HOST, backlog: 4_096 })
    return { url, close: () => server.close() }
  } catch (error) {
    await server.close()
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('LISTEN_FAILED', `Port ${port} of ${options.host ?? HOST} cannot be had: ${why}.`, error)
  }
}

async function serverFor(inbound: Inbound, options: ListenOptions, bounds: ServerBounds): Promise<FastifyInstance> {
  // Only who listens needs it.
  const { fastify } = await import('fastify')
  let isClosing = false
  const handle = (request: FastifyRequest, reply: FastifyReply): Promise<unknown> =>
    handled(inbound, request, reply, () => isClosing)
  const server = configured(() => fastify({ ...fastifyOptions(options, bounds), frameworkErrors: failing(handle) }))
  server.server.maxConnections = CONNECTIONS_MAX
  server.addHook('preClose', (done) => {
    isClosing = true
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

function fastifyOptions({ tls, trustProxy }: ListenOptions, bounds: ServerBounds): object {
  const { headersWithin, requestWithin, keptAliveFor, lookedEvery } = bounds
  const limits = {
    maxHeaderSize: HEADERS_MAX,
    headersTimeout: headersWithin,
    requestTimeout: requestWithin,
    connectionsCheckingInterval: lookedEvery,
  }
  return {
    trustProxy: trustProxy === undefined ? false : listed(trustProxy),
    requestTimeout: requestWithin,
    keepAliveTimeout: keptAliveFor,
    forceCloseConnections: 'idle',
    // The app itself knows what it answers while it stops.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    clientErrorHandler: answerBroken,
    ...(tls === undefined ? { http: limits } : { https: { ...limits, handshakeTimeout: headersWithin, ...tls } }),
  }
}

function listed(trustProxy: readonly string[]): string[] {
  if (Array.isArray(trustProxy)) return [...trustProxy]
  throw new SluiceError('CONFIG_INVALID', "listen: trustProxy is a list of addresses and networks: ['10.0.0.0/8'].")
}

/** Keys, certificates and networks are looked at here for the first time. */
function configured(make: () => FastifyInstance): FastifyInstance {
  try {
    return make()
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('CONFIG_INVALID', `listen: tls or trustProxy cannot be used: ${why}.`, error)
  }
}

async function handled(
  inbound: Inbound,
  request: FastifyRequest,
  reply: FastifyReply,
  isClosing: () => boolean,
): Promise<unknown> {
  const head = headOf(request)
  const own = inbound.ownRoute(head.method, head.url.pathname)
  const send =
    own === undefined
      ? sending(await inbound.answer(head, nodeBody(request.raw)))
      : sendingOwn(await own.handle(webRequest(request, head), { address: head.address }))
  // Whoever is kept alive would keep the server from closing.
  if (isClosing()) void reply.header('connection', 'close')
  return send(reply)
}

function headOf(request: FastifyRequest): RequestHead {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return { method: request.method, url: urlOf(request), headers, address: request.ip }
}

/** Nonsense in a host header is no reason to fail, and none to look for another path than the one that was asked for. */
function urlOf({ protocol, host, originalUrl }: FastifyRequest): URL {
  const origin = originOf(`${protocol}://${host}`)
  const path = originalUrl.startsWith('/') ? originalUrl : `/${originalUrl}`
  return URL.parse(`${origin ?? 'http://localhost'}${path}`) ?? NOWHERE
}

// Almost all requests are to one and the same.
const latest: { called: string; origin: string | undefined } = { called: '', origin: undefined }

function originOf(called: string): string | undefined {
  if (latest.called !== called) {
    Object.assign(latest, { called, origin: /^https?:/.test(called) ? URL.parse(called)?.origin : undefined })
  }
  return latest.origin
}

function webRequest(request: FastifyRequest, { method, url, headers }: RequestHead): Request {
  const body = method === 'GET' || method === 'HEAD' ? null : (Readable.toWeb(request.raw) as ReadableStream)
  return new Request(url, { method, headers, body, duplex: 'half' })
}

const NOWHERE = new URL('http://localhost/')

function portOf(given: number | undefined): number {
  // One that is set to nothing is not set.
  const port = given ?? Number(process.env['PORT']?.trim() || PORT)
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port
  throw new SluiceError('CONFIG_INVALID', `listen: port is ${port}; it is a number from 0 to 65535.`)
}
