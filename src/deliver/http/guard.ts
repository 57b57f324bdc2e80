// `guardedAgent` is the only way out to subscribers. It connects only to addresses that it has checked itself (D3).
import { Resolver } from 'node:dns/promises'
import { connect as connectTo, isIP, type Socket } from 'node:net'
// An older Node.js has no getCACertificates. As a named import, it would fail before Sluice can say which Node.js it needs.
import * as tls from 'node:tls'
import { Agent, buildConnector } from 'undici'
import type { Clock, Millis } from '../../clock.ts'
import { hostOf, isForbidden, isLoopbackHost, type GuardRules } from './addresses.ts'

export type Dial = (to: { readonly host: string; readonly port: number }) => Socket

/** Returns all addresses of a name; rejects a name without addresses. */
export type Lookup = (name: string) => Promise<readonly string[]>

export interface GuardOptions extends GuardRules {
  readonly clock: Clock
  readonly lookup?: Lookup
  /** Covers the lookup, the connection and the TLS handshake together. */
  readonly connectTimeout?: Millis
  /** Opens a connection to an address; by default `connect` of Node. The agent still checks which peer responds. */
  readonly dial?: Dial
  /** Trusted certificates in addition to those of Node, as PEM. */
  readonly ca?: string | readonly string[]
}

export type ConnectFault = 'guarded' | 'dns' | 'connect' | 'tls' | 'timeout'

/** `ConnectError` is a failure before the first byte of the request was sent. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError'
  readonly why: ConnectFault
  /** For the operator's log. The message is shown to the subscriber and must not reveal the internal network. */
  readonly detail: string | undefined

  constructor(why: ConnectFault, message: string, { cause, detail }: { cause?: unknown; detail?: string } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.why = why
    this.detail = detail
  }
}

/** One message for every forbidden destination, so that it reveals nothing. */
export const NOT_ALLOWED: string = 'The destination is not allowed.'
/** One message for a name that resolves to an internal address and for a name that does not exist. */
const NO_ADDRESS = 'The host name resolves to no public address.'

const CONNECT_TIMEOUT: Millis = 10_000
const LOOKUP_TIMEOUT: Millis = 2_000
const LOOKUP_TRIES = 2
const HEADERS_MAX = 16 * 1024
const KEEP_ALIVE_MAX: Millis = 60_000
const LOOPBACK_ADDRESSES: readonly string[] = ['127.0.0.1', '::1']

type Connector = ReturnType<typeof buildConnector>
type Target = Parameters<Connector>[0]

export function guardedAgent(options: GuardOptions): Agent {
  return new GuardedAgent(options, new AbortController())
}

class GuardedAgent extends Agent {
  readonly #closing: AbortController

  constructor(options: GuardOptions, end: AbortController) {
    super({
      connect: guardedConnector(options, end.signal),
      maxHeaderSize: HEADERS_MAX,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX,
      allowH2: false,
      // The caller has one deadline for the whole exchange; these timeouts measure only pauses.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    this.#closing = end
  }

  /** `destroy` also aborts connections in the making, so that a stopping process does not wait for them. */
  override destroy(...how: readonly unknown[]): never {
    this.#closing.abort(new ConnectError('connect', 'The agent was closed.'))
    // undici overloads `destroy` and calls one overload from another, so all arguments are passed on.
    return (super.destroy as (...how: unknown[]) => never).apply(this, [...how])
  }
}

function guardedConnector(options: GuardOptions, end: AbortSignal): Connector {
  const { clock, connectTimeout = CONNECT_TIMEOUT } = options
  const lookup = options.lookup ?? createLookup()
  // The timeout above uses the injected clock, so this one is off.
  const secure = buildConnector({
    allowH2: false,
    timeout: 0,
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0, set for another client, would disable the check.
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: [...tls.getCACertificates('default'), ...[options.ca].flat()] }),
  })
  return (target, onConnect) => {
    const up = new AbortController()
    const cancel = clock.after(connectTimeout, () =>
      up.abort(new ConnectError('timeout', `No connection within ${connectTimeout} ms.`)),
    )
    const signal = AbortSignal.any([up.signal, end])
    const opened = connectGuarded({ target, options, lookup, secure, signal })
    void opened.finally(cancel).then(
      (socket) => onConnect(null, socket),
      (error: unknown) => onConnect(toConnectError(error), null),
    )
  }
}

interface ConnectRequest {
  readonly target: Target
  readonly options: GuardOptions
  readonly lookup: Lookup
  readonly secure: Connector
  readonly signal: AbortSignal
}

async function connectGuarded({ target, options, lookup, secure, signal }: ConnectRequest): Promise<Socket> {
  const host = hostOf(target)
  const isSecure = target.protocol === 'https:'
  if (!isSecure && !(options.allowLoopback === true && isLoopbackHost(host))) throw notAllowedError()
  const address = await raceAbort(resolveAddress(host, lookup, options), signal)
  const port = Number(target.port === '' ? (isSecure ? 443 : 80) : target.port)
  const socket = (options.dial ?? connectTo)({ host: address, port }).setNoDelay().setKeepAlive(true)
  try {
    await raceAbort(waitForConnect(socket), signal)
    const peer = socket.remoteAddress
    if (peer === undefined) throw new ConnectError('connect', 'The connection was closed as soon as it was made.')
    // A proxy or a wrapper of sockets may have connected to another address.
    if (isForbidden(peer, options)) throw notAllowedError()
    return isSecure
      ? await raceAbort(connectTls(secure, { ...target, hostname: host, httpSocket: socket }), signal)
      : socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Resolves the name once and returns one of its addresses. A single forbidden address makes the name forbidden. */
async function resolveAddress(host: string, lookup: Lookup, rules: GuardRules): Promise<string> {
  if (isIP(host) !== 0) {
    if (isForbidden(host, rules)) throw notAllowedError()
    return host
  }
  const addresses = await lookUp(host, lookup)
  const forbidden = addresses.find((address) => isForbidden(address, rules))
  if (forbidden !== undefined) throw noAddress(`${host} resolves to ${forbidden}, which is a forbidden address.`)
  // IPv4 first, because not every network has IPv6.
  const address = addresses.find((one) => isIP(one) === 4) ?? addresses[0]
  if (address === undefined) throw noAddress(`${host} has no address.`)
  return address
}

async function lookUp(host: string, lookup: Lookup): Promise<readonly string[]> {
  // Loopback names need no name server. The address check decides whether loopback is allowed.
  if (isLoopbackHost(host)) return LOOPBACK_ADDRESSES
  try {
    return await lookup(host)
  } catch (error) {
    throw noAddress(`${host}: ${toMessage(error)}`, error)
  }
}

/**
 * `createLookup` does not use `getaddrinfo`, which shares four threads with file access and crypto: a slow name
 * server would block them. `servers` replaces the machine's name servers.
 */
export function createLookup(servers?: readonly string[]): Lookup {
  const resolver = new Resolver({ timeout: LOOKUP_TIMEOUT, tries: LOOKUP_TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const fault = answers.find((answer) => answer.status === 'rejected')
    if (addresses.length === 0 && fault !== undefined) throw fault.reason
    return addresses
  }
}

async function waitForConnect(socket: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  // The listener stays, because an error of a socket without an owner would end the process.
  socket.on('error', (error) => reject(new ConnectError('connect', toMessage(error), { cause: error })))
  return promise
}

async function connectTls(secure: Connector, target: Target): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  secure(target, (error, socket) => {
    if (error === null) resolve(socket)
    else reject(new ConnectError('tls', toMessage(error), { cause: error }))
  })
  return promise
}

/** Settles like the first of the two. A later rejection of `work` is ignored. */
async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const give = (): void => reject(signal.reason as Error)
  if (signal.aborted) give()
  signal.addEventListener('abort', give, { once: true })
  work.catch(() => {})
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', give))
}

function noAddress(detail: string, cause?: unknown): ConnectError {
  return new ConnectError('dns', NO_ADDRESS, { cause, detail })
}

function notAllowedError(): ConnectError {
  return new ConnectError('guarded', NOT_ALLOWED)
}

function toConnectError(error: unknown): ConnectError {
  return error instanceof ConnectError ? error : new ConnectError('connect', toMessage(error), { cause: error })
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
