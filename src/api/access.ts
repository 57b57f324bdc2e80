// `Access` authenticates the callers of the admin API: by key, by endpoint token, or by loopback address while no key
// exists. `RegistrationLimiter` bounds their calls that reach other servers.
import { hash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ConnectionInfo } from '../http/admin-api.ts'
import { LOOPBACK_ACTOR, type ApiKey, type Keys } from '../admin/keys.ts'
import type { Sessions } from '../admin/sessions.ts'
import { toNetwork, RequestRateLimiter } from '../receive/rate.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { TooManyRequestsError } from './responses.ts'
import type { Role } from './route.ts'

export interface AccessDependencies {
  readonly keys: Keys
  /** The sign-ins to the dashboard. */
  readonly sessions: Sessions
  /** Whether calls from this machine need no key while no key exists. */
  readonly isOpen: boolean
  /** Returns the endpoint that has this token, or undefined. */
  readonly findTokenOwner: (token: string) => Promise<string | undefined>
  readonly monotonic: () => Millis
  /** A caller at this address used an unknown key. */
  readonly onRefused: (address: string) => void
}

/** `Identity` is a caller and how it was recognised. */
export interface Identity {
  readonly name: string
  readonly role: Role
  readonly by: 'key' | 'cookie' | 'loopback' | 'host'
  /** When the session ends. */
  readonly until?: Millis
  /** The name in the audit log. */
  readonly actor: string
  /** The tenant to which a key with the role `register` is bound. */
  readonly tenant?: string
}

/** `AllowedCaller` is a caller whose role permits the call. */
export type AllowedCaller = Pick<Identity, 'actor' | 'tenant'>

/** The cookie of a session. It counts only below a mount of the dashboard. */
export const SESSION_COOKIE = 'sluice-session'
/** The prefix of the caller's name in the audit log when the host app has signed the caller in. No key can have it. */
const HOST_PREFIX = 'host:'

/** The prefix of the caller's name when the caller has an endpoint's token and no key. */
export const SUBSCRIBER_PREFIX = 'subscriber:'
const CALL_RATE = { rate: 1_200, per: 60_000 }
/** The limit for wrong keys. Guessing is hopeless anyway, but it must not flood the log and the store either. */
const FAILURE_RATE = { rate: 20, per: 60_000 }
/** The limit for sign-ins of one address, right or wrong: the audit log keeps each right one. */
const SIGN_IN_RATE = { rate: 20, per: 60_000 }

/** How many keys and tokens are remembered. The least recently used one makes room. */
const MAX_REMEMBERED = 10_000

export class Access {
  readonly #deps: AccessDependencies
  readonly #callsByKey = new RequestRateLimiter(CALL_RATE.rate, CALL_RATE.per)
  readonly #callsByAddress = new RequestRateLimiter(CALL_RATE.rate, CALL_RATE.per)
  readonly #unverifiedCalls = new RequestRateLimiter(CALL_RATE.rate, CALL_RATE.per)
  /** Hashes of keys and tokens that worked lately. Wrong keys from the same address do not lock these callers out. */
  readonly #knownCredentials = new Set<string>()
  readonly #failures = new RequestRateLimiter(FAILURE_RATE.rate, FAILURE_RATE.per)
  readonly #signIns = new RequestRateLimiter(SIGN_IN_RATE.rate, SIGN_IN_RATE.per)

  constructor(deps: AccessDependencies) {
    this.#deps = deps
  }

  /** `check` returns the caller's name or throws the reason. */
  async check(head: RequestHead, connection: ConnectionInfo, role: Role): Promise<string> {
    return (await this.allow(head, connection, role)).actor
  }

  /** `allow` returns the caller or throws the reason. `own` is the endpoint whose token is also accepted. */
  async allow(head: RequestHead, connection: ConnectionInfo, role: Role, own?: string): Promise<AllowedCaller> {
    const identity = await this.#recognise(head, connection)
    if (typeof identity === 'string') return { actor: this.#checkSubscriber(identity, own) }
    if (identity.role !== role && identity.role !== 'operate') {
      const needed = role === 'operate' ? role : `${role} or operate`
      const who = identity.by === 'host' ? `The user ${identity.name}` : `The key ${identity.name}`
      throw new SluiceError(
        'ROLE_TOO_LOW',
        `${who} has the role ${identity.role}, and this call needs the role ${needed}.`,
      )
    }
    return identity
  }

  /** `identify` returns the caller with its role, or throws the reason. The token of an endpoint is no identity. */
  async identify(head: RequestHead, connection: ConnectionInfo): Promise<Identity> {
    const identity = await this.#recognise(head, connection)
    return typeof identity === 'string' ? this.#refuse(head) : identity
  }

  /** Returns the identity of the caller, or the endpoint whose token it has. */
  async #recognise(head: RequestHead, connection: ConnectionInfo): Promise<Identity | string> {
    refuseCrossSite(head)
    const { dashboard } = connection
    if (dashboard?.user !== undefined) {
      if (head.method !== 'GET') this.assertFromPage(head)
      const { name, role } = dashboard.user
      this.#countCall(this.#callsByKey, HOST_PREFIX + name, `The user ${name}`)
      return { name, role, by: 'host', actor: HOST_PREFIX + name }
    }
    const given = parseBearer(head.headers['authorization'])
    const token = dashboard === undefined || given !== undefined ? undefined : readSessionCookie(head)
    if (token !== undefined) {
      const identity = await this.#recogniseSession(head, token)
      if (identity !== undefined) return identity
    }
    if (given === undefined) return this.#checkAnonymous(head, connection)
    const key = await this.#identifyCaller(given, toNetwork(head.address))
    if (key === undefined) return this.#refuse(head)
    if (typeof key === 'string') return key
    // Counted per key, so that other callers at the same address do not use up this key's limit.
    this.#countCall(this.#callsByKey, key.name, `The key ${key.name}`)
    return { name: key.name, role: key.role, by: 'key', actor: key.name, ...tenantOf(key) }
  }

  /** Undefined if the session has ended. An unknown token costs the store no more than an unknown key does. */
  async #recogniseSession(head: RequestHead, token: string): Promise<Identity | undefined> {
    if (head.method !== 'GET') this.assertFromPage(head)
    const hashed = hash('sha256', token, 'base64url')
    if (!this.#knownCredentials.has(hashed))
      this.#countCall(this.#unverifiedCalls, toNetwork(head.address), 'This address')
    const session = await this.#deps.sessions.find(token)
    this.#knownCredentials.delete(hashed)
    if (session === undefined) return undefined
    this.#remember(hashed)
    const { key, until } = session
    this.#countCall(this.#callsByKey, key.name, `The key ${key.name}`)
    return { name: key.name, role: key.role, by: 'cookie', until, actor: key.name, ...tenantOf(key) }
  }

  /**
   * `assertFromPage` throws unless the browser says that a page of this origin made the request. The browser sends cookies
   * without being asked, so a cookie proves nothing about the page that made the request.
   */
  assertFromPage({ headers }: RequestHead): void {
    const site = headers['sec-fetch-site']
    const { origin } = headers
    const isOwn = site === undefined ? origin !== undefined && isHostOf(origin, headers) : site === 'same-origin'
    if (!isOwn) throw new SluiceError('CROSS_SITE', 'The call was not made by a page of the dashboard.')
  }

  /** `countSignIn` throws if the address signs in too often. */
  countSignIn({ address }: RequestHead): void {
    this.#countCall(this.#signIns, toNetwork(address), 'This address')
  }

  /** `authenticateKey` returns the key of a sign-in, or throws. */
  async authenticateKey(head: RequestHead, secret: string): Promise<ApiKey> {
    const key = await this.#identifyCaller(secret, toNetwork(head.address))
    return key === undefined || typeof key === 'string' ? this.#refuse(head) : key
  }

  /**
   * Returns the key, or the endpoint whose token it is. Unknown credentials count before the store is read, so that
   * they cost the store no more than calls without a key.
   */
  async #identifyCaller(value: string, network: string): Promise<ApiKey | string | undefined> {
    const { keys, findTokenOwner } = this.#deps
    const hashed = hash('sha256', value, 'base64url')
    if (!this.#knownCredentials.has(hashed)) this.#countCall(this.#unverifiedCalls, network, 'This address')
    const key = await keys.authenticate(value)
    const owner = key === undefined ? await findTokenOwner(value) : undefined
    this.#knownCredentials.delete(hashed)
    if (key === undefined && owner === undefined) return undefined
    this.#remember(hashed)
    return key ?? owner
  }

  #remember(hashed: string): void {
    this.#knownCredentials.add(hashed)
    if (this.#knownCredentials.size > MAX_REMEMBERED)
      this.#knownCredentials.delete(this.#knownCredentials.values().next().value ?? '')
  }

  #checkSubscriber(owner: string, own: string | undefined): string {
    // No key can have this name.
    const who = `${SUBSCRIBER_PREFIX}${owner}`
    this.#countCall(this.#callsByKey, who, 'This token')
    if (owner !== own) throw new SluiceError('TOKEN_NOT_ALLOWED', 'The token of an endpoint does not allow this call.')
    return who
  }

  /** `isStillAllowed` checks a caller again whom `check` accepted before. */
  async isStillAllowed(head: RequestHead, { dashboard }: ConnectionInfo): Promise<boolean> {
    const { keys, sessions } = this.#deps
    // The host app decides who may open a stream, and ends the connection when that is over.
    if (dashboard?.user !== undefined) return true
    const given = parseBearer(head.headers['authorization'])
    if (given !== undefined) return (await keys.authenticate(given)) !== undefined
    const token = dashboard === undefined ? undefined : readSessionCookie(head)
    if (token !== undefined && (await sessions.find(token)) !== undefined) return true
    return this.#isOpen()
  }

  #refuse({ address }: RequestHead): never {
    this.#countCall(this.#failures, toNetwork(address), 'This address')
    this.#deps.onRefused(address)
    throw new SluiceError('KEY_INVALID', 'The key is unknown or revoked.')
  }

  async #checkAnonymous(head: RequestHead, connection: ConnectionInfo): Promise<Identity> {
    this.#countCall(this.#callsByAddress, toNetwork(head.address), 'This address')
    if (isLocalCaller(head, connection) && (await this.#isOpen())) {
      return { name: LOOPBACK_ACTOR, role: 'operate', by: 'loopback', actor: LOOPBACK_ACTOR }
    }
    throw new SluiceError('KEY_MISSING', 'The call needs an API key.')
  }

  async #isOpen(): Promise<boolean> {
    return this.#deps.isOpen && !(await this.#deps.keys.hasAny())
  }

  #countCall(rate: RequestRateLimiter, caller: string, title: string): void {
    const after = rate.count(caller, this.#deps.monotonic())
    if (after !== undefined) throw new TooManyRequestsError(`${title} makes too many calls.`, after)
  }
}

function tenantOf({ tenant }: ApiKey): Pick<Identity, 'tenant'> {
  return tenant === undefined ? {} : { tenant }
}

function parseBearer(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : (/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '')
}

/** `readSessionCookie` returns the token of the session, if the request has one. */
export function readSessionCookie({ headers }: RequestHead): string | undefined {
  return new RegExp(`(?:^|;)\\s*${SESSION_COOKIE}=([\\w-]+)`).exec(headers['cookie'] ?? '')?.[1]
}

/** Browsers mark the requests that a page of another origin makes. */
function refuseCrossSite({ headers }: RequestHead): void {
  const site = headers['sec-fetch-site']
  const { origin } = headers
  // A proxy may change the host header, so `sec-fetch-site`, which the browser sets, has precedence over a comparison of hosts.
  const isForeign =
    site === undefined ? origin !== undefined && !isHostOf(origin, headers) : site !== 'same-origin' && site !== 'none'
  if (isForeign) throw new SluiceError('CROSS_SITE', 'The call was made by a page of another origin.')
}

function isHostOf(origin: string, headers: RequestHead['headers']): boolean {
  return URL.parse(origin)?.host === headers['host']
}

/** Headers that proxies add to requests they forward. */
const PROXY_HEADERS =
  /^(?:x-forwarded-|x-original-|x-envoy-|forwarded$|via$|cdn-loop$|(?:cf-connecting|true-client|x-real|x-client|x-cluster-client)-ip$)/
const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i

/** A DNS name that a foreign page rebinds to this address, or a proxy on the same machine, is not a local caller. */
function isLocalCaller({ address, headers }: RequestHead, { isDirect }: ConnectionInfo): boolean {
  if (!isDirect || !isLoopback(address) || !LOCAL_HOST.test(headers['host'] ?? '')) return false
  return !Object.keys(headers).some((name) => PROXY_HEADERS.test(name))
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}

export interface RegistrationRate {
  /** The rate of one address, and of one key. */
  readonly rate: number
  readonly per: Millis
}

/**
 * `RegistrationLimiter` bounds how many endpoints one address, and one key, may register, move, verify or test. This
 * protects Sluice and third parties from a flood. Each process counts by itself, as it does for all requests.
 */
export class RegistrationLimiter {
  readonly #what: string
  readonly #monotonic: () => Millis
  readonly #byAddress: RequestRateLimiter
  readonly #byKey: RequestRateLimiter

  /** `what` completes the error text: `This address asks for too many tests.` */
  constructor(what: string, { rate, per }: RegistrationRate, monotonic: () => Millis) {
    this.#what = what
    this.#monotonic = monotonic
    this.#byAddress = new RequestRateLimiter(rate, per)
    this.#byKey = new RequestRateLimiter(rate, per)
  }

  /** `count` throws if the rate is exceeded. */
  count(address: string, who: string): void {
    const now = this.#monotonic()
    this.#assertBelowRate(this.#byAddress.count(toNetwork(address), now), 'This address')
    if (who !== LOOPBACK_ACTOR) this.#assertBelowRate(this.#byKey.count(who, now), `The key ${who}`)
  }

  #assertBelowRate(after: Millis | undefined, title: string): void {
    if (after !== undefined) throw new TooManyRequestsError(`${title} asks for too many ${this.#what}.`, after)
  }
}
