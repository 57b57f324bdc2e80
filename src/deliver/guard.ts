// The only way out to subscribers: an agent that opens no connection to an address it has not looked at itself (D3).
import { connect as connectTo, isIP, type Socket } from 'node:net'
import { getCACertificates } from 'node:tls'
import { Agent, buildConnector } from 'undici'
import type { Clock, Millis } from '../clock.ts'
import { hostOf, isForbidden, isLoopbackHost, type GuardRules } from './addresses.ts'
import { lookupBy, type Lookup } from './lookup.ts'

export type Dial = (to: { readonly host: string; readonly port: number }) => Socket

export interface GuardOptions extends GuardRules {
  readonly clock: Clock
  readonly lookup?: Lookup
  /** For the lookup, the connection and the handshake together. */
  readonly connectTimeout?: Millis
  /** Opens a connection to an address; `connect` of Node unless said. It is not believed: who answers is looked at. */
  readonly dial?: Dial
  /** Certificates to be trusted beside those that come with Node, as PEM. */
  readonly ca?: string | readonly string[]
}

export type NotConnected = 'guarded' | 'dns' | 'connect' | 'tls' | 'timeout'

/** What is wrong before the first byte of a request is sent. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError'
  readonly why: NotConnected

  constructor(why: NotConnected, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.why = why
  }
}

/** One sentence for all of them: who registers endpoints must not learn what our network looks like. */
export const NOT_ALLOWED: string = 'The destination is not allowed.'

const CONNECT_TIMEOUT: Millis = 10_000
const HEADERS_MAX = 16 * 1024
const KEEP_ALIVE_MAX: Millis = 60_000
const OWN: readonly string[] = ['127.0.0.1', '::1']

type Connector = ReturnType<typeof buildConnector>
type Target = Parameters<Connector>[0]

export function guardedAgent(options: GuardOptions): Agent {
  return new GuardedAgent(options, new AbortController())
}

class GuardedAgent extends Agent {
  readonly #end: AbortController

  constructor(options: GuardOptions, end: AbortController) {
    super({
      connect: guardedConnector(options, end.signal),
      maxHeaderSize: HEADERS_MAX,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX,
      allowH2: false,
      // Whoever posts has one deadline for everything; these two only measure pauses.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    this.#end = end
  }

  /** Also what is being connected just now: a process that stops does not wait for it. */
  override destroy(...how: readonly unknown[]): never {
    this.#end.abort(new ConnectError('connect', 'The way out was closed.'))
    // In all the ways in which it may be called, of which it uses another itself.
    return (super.destroy as (...how: unknown[]) => never).apply(this, [...how])
  }
}

function guardedConnector(options: GuardOptions, end: AbortSignal): Connector {
  const { clock, connectTimeout = CONNECT_TIMEOUT } = options
  const lookup = options.lookup ?? lookupBy()
  // Time is kept here, by the clock.
  const secure = buildConnector({
    allowH2: false,
    timeout: 0,
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), ...[options.ca].flat()] }),
  })
  return (target, tell) => {
    const up = new AbortController()
    const cancel = clock.after(connectTimeout, () =>
      up.abort(new ConnectError('timeout', `There was no connection within ${connectTimeout} ms.`)),
    )
    const signal = AbortSignal.any([up.signal, end])
    const opened = open({ target, options, lookup, secure, signal })
    void opened.finally(cancel).then(
      (socket) => tell(null, socket),
      (error: unknown) => tell(connectErrorOf(error), null),
    )
  }
}

interface Opening {
  readonly target: Target
  readonly options: GuardOptions
  readonly lookup: Lookup
  readonly secure: Connector
  readonly signal: AbortSignal
}

async function open({ target, options, lookup, secure, signal }: Opening): Promise<Socket> {
  const host = hostOf(target)
  const isSecure = target.protocol === 'https:'
  if (!isSecure && !(options.allowLoopback === true && isLoopbackHost(host))) throw notAllowed()
  const address = await inTime(pinned(host, lookup, options), signal)
  const port = Number(target.port === '' ? (isSecure ? 443 : 80) : target.port)
  const socket = (options.dial ?? connectTo)({ host: address, port }).setNoDelay().setKeepAlive(true)
  try {
    await inTime(connected(socket), signal)
    const peer = socket.remoteAddress
    if (peer === undefined) throw new ConnectError('connect', 'The connection was closed as soon as it was made.')
    // Whatever lies between us and the network may have led us elsewhere.
    if (isForbidden(peer, options)) throw notAllowed()
    return isSecure ? await inTime(secured(secure, { ...target, hostname: host, httpSocket: socket }), signal) : socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** One of its addresses, and never asked for again; one that is forbidden among them spoils them all. */
async function pinned(host: string, lookup: Lookup, rules: GuardRules): Promise<string> {
  const addresses = isIP(host) === 0 ? await found(host, lookup) : [host]
  if (addresses.some((address) => isForbidden(address, rules))) throw notAllowed()
  // Not every network has IPv6.
  const address = addresses.find((one) => isIP(one) === 4) ?? addresses[0]
  if (address === undefined) throw new ConnectError('dns', `${host} has no address.`)
  return address
}

async function found(host: string, lookup: Lookup): Promise<readonly string[]> {
  // No name server is asked where the own machine is; if it may not be reached, the addresses say so.
  if (isLoopbackHost(host)) return OWN
  try {
    return await lookup(host)
  } catch (error) {
    throw new ConnectError('dns', `${host} has no address: ${messageOf(error)}`, error)
  }
}

async function connected(socket: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  // Stays: what happens to a socket that nobody has taken over yet is nobody's end.
  socket.on('error', (error) => reject(new ConnectError('connect', messageOf(error), error)))
  return promise
}

async function secured(secure: Connector, target: Target): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  secure(target, (error, socket) => {
    if (error === null) resolve(socket)
    else reject(new ConnectError('tls', messageOf(error), error))
  })
  return promise
}

/** The first of both. What comes later is not waited for, and nobody misses it. */
async function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const give = (): void => reject(signal.reason as Error)
  if (signal.aborted) give()
  signal.addEventListener('abort', give, { once: true })
  work.catch(() => {})
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', give))
}

function notAllowed(): ConnectError {
  return new ConnectError('guarded', NOT_ALLOWED)
}

function connectErrorOf(error: unknown): ConnectError {
  return error instanceof ConnectError ? error : new ConnectError('connect', messageOf(error), error)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
