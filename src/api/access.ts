// `Access` authenticates the callers of the admin API: by key, by endpoint token, or by loopback address while no key
// exists. `RegistrationLimiter` bounds their calls that reach other servers.
import { hash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ConnectionInfo } from '../http/request-router.ts'
import { LOOPBACK_ACTOR, type ApiKey, type Keys } from '../admin/keys.ts'
import { toNetwork, RequestRateLimiter } from '../receive/rate.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { TooManyRequestsError } from './responses.ts'
import type { Role } from './route.ts'

export interface AccessDependencies {
  readonly keys: Keys
  /** Whether calls from this machine need no key while no key exists. */
  readonly isOpen: boolean
  /** Returns the endpoint that has this token, or undefined. */
  readonly findTokenOwner: (token: string) => Promise<string | undefined>
  readonly monotonic: () => Millis
  /** A caller at this address used an unknown key. */
  readonly onRefused: (address: string) => void
}

/** The prefix of the caller's name when the caller has an endpoint's token and no key. */
export const SUBSCRIBER_PREFIX = 'subscriber:'
const CALL_RATE = { rate: 1_200, per: 60_000 }
/** The limit for wrong keys. Guessing is hopeless anyway, but it must not flood the log and the store either. */
const FAILURE_RATE = { rate: 20, per: 60_000 }

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

  constructor(deps: AccessDependencies) {
    this.#deps = deps
  }

  /** `check` returns the caller's name or throws the reason. `own` is the endpoint whose token is also accepted. */
  async check(head: RequestHead, connection: ConnectionInfo, role: Role, own?: string): Promise<string> {
    refuseCrossSite(head)
    const given = parseBearer(head.headers['authorization'])
    if (given === undefined) return this.#checkAnonymous(head, connection)
    const key = await this.#identifyCaller(given, toNetwork(head.address))
    if (key === undefined) return this.#refuse(head)
    if (typeof key === 'string') return this.#checkSubscriber(key, own)
    // Counted per key, so that other callers at the same address do not use up this key's limit.
    this.#countCall(this.#callsByKey, key.name, `The key ${key.name}`)
    if (key.role !== role && key.role !== 'operate') {
      const needed = role === 'operate' ? role : `${role} or operate`
      throw new SluiceError(
        'ROLE_TOO_LOW',
        `The key ${key.name} has the role ${key.role}, and this call needs the role ${needed}.`,
      )
    }
    return key.name
  }

  /**
   * Returns the key, or the endpoint whose token it is. Unknown credentials count before the store is read, so that
   * they cost the store no more than calls without a key.
   */
  async #identifyCaller(given: string, network: string): Promise<ApiKey | string | undefined> {
    const { keys, findTokenOwner: ownerOf } = this.#deps
    const hashed = hash('sha256', given, 'base64url')
    if (!this.#knownCredentials.has(hashed)) this.#countCall(this.#unverifiedCalls, network, 'This address')
    const key = await keys.authenticate(given)
    const owner = key === undefined ? await ownerOf(given) : undefined
    this.#knownCredentials.delete(hashed)
    if (key === undefined && owner === undefined) return undefined
    this.#knownCredentials.add(hashed)
    if (this.#knownCredentials.size > MAX_REMEMBERED)
      this.#knownCredentials.delete(this.#knownCredentials.values().next().value ?? '')
    return key ?? owner
  }

  #checkSubscriber(owner: string, own: string | undefined): string {
    // No key can have this name.
    const who = `${SUBSCRIBER_PREFIX}${owner}`
    this.#countCall(this.#callsByKey, who, 'This token')
    if (owner !== own) throw new SluiceError('TOKEN_NOT_ALLOWED', 'The token of an endpoint does not allow this call.')
    return who
  }

  /** `isStillAllowed` checks a caller again whom `check` accepted before. */
  async isStillAllowed({ headers }: RequestHead): Promise<boolean> {
    const { keys } = this.#deps
    const given = parseBearer(headers['authorization'])
    return given === undefined ? this.#isOpen() : (await keys.authenticate(given)) !== undefined
  }

  #refuse({ address }: RequestHead): never {
    this.#countCall(this.#failures, toNetwork(address), 'This address')
    this.#deps.onRefused(address)
    throw new SluiceError('KEY_INVALID', 'The key is unknown or revoked.')
  }

  async #checkAnonymous(head: RequestHead, connection: ConnectionInfo): Promise<string> {
    this.#countCall(this.#callsByAddress, toNetwork(head.address), 'This address')
    if (isLocalCaller(head, connection) && (await this.#isOpen())) return LOOPBACK_ACTOR
    throw new SluiceError('KEY_MISSING', 'The call needs an API key.')
  }

  async #isOpen(): Promise<boolean> {
    return this.#deps.isOpen && !(await this.#deps.keys.hasAny())
  }

  #countCall(rate: RequestRateLimiter, who: string, said: string): void {
    const after = rate.count(who, this.#deps.monotonic())
    if (after !== undefined) throw new TooManyRequestsError(`${said} makes too many calls.`, after)
  }
}

function parseBearer(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : (/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '')
}

/** Browsers mark the requests that a page of another origin makes. */
function refuseCrossSite({ headers }: RequestHead): void {
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const { origin } = headers
  if (!isForeign && (origin === undefined || URL.parse(origin)?.host === headers['host'])) return
  throw new SluiceError('CROSS_SITE', 'The call was made by a page of another origin.')
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

  #assertBelowRate(after: Millis | undefined, said: string): void {
    if (after !== undefined) throw new TooManyRequestsError(`${said} asks for too many ${this.#what}.`, after)
  }
}
