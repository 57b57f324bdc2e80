// Who may call the admin API: whoever has a key of the role; and, until there is one, only who is on the machine itself.
import { hash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Connection } from '../http/inbound.ts'
import { LOOPBACK, type Key, type Keys } from '../operate/keys.ts'
import { networkOf, RequestRate } from '../receive/request-rate.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { CallLater } from './call-later.ts'
import type { Role } from './route.ts'

export interface AccessParts {
  readonly keys: Keys
  /** The subscriber whose own token it is; undefined: nobody's. */
  readonly ownerOf: (token: string) => Promise<string | undefined>
  readonly monotonic: () => Millis
  /** Somebody at this address tried a key that nobody has. */
  readonly refused: (address: string) => void
}

export { LOOPBACK } from '../operate/keys.ts'

const CALLS = { rate: 1_200, per: 60_000 }
/** Of keys that were wrong: guessing is hopeless anyway, and shall be quiet as well. */
const FAILURES = { rate: 20, per: 60_000 }

/** Keys and tokens; the one that was used longest ago makes room. */
const REMEMBERED = 10_000

export class Access {
  readonly #parts: AccessParts
  readonly #byKey = new RequestRate(CALLS.rate, CALLS.per)
  readonly #byAddress = new RequestRate(CALLS.rate, CALLS.per)
  readonly #unproven = new RequestRate(CALLS.rate, CALLS.per)
  /** Hashes of what opened something lately: whoever has it gets in, whatever others of the address try. */
  readonly #good = new Set<string>()
  readonly #failures = new RequestRate(FAILURES.rate, FAILURES.per)

  constructor(parts: AccessParts) {
    this.#parts = parts
  }

  /** Who it is, or an error that says why not. `own`: the subscriber whose own token will do. */
  async check(head: RequestHead, connection: Connection, role: Role, own?: string): Promise<string> {
    refuseCrossSite(head)
    const given = bearerOf(head.headers['authorization'])
    if (given === undefined) return this.#stranger(head, connection)
    const key = await this.#found(given, networkOf(head.address))
    if (key === undefined) return this.#refuse(head)
    if (typeof key === 'string') return this.#subscriber(key, own)
    // By its own name: what others of the same address do is not held against it.
    this.#count(this.#byKey, key.name, `The key ${key.name}`)
    if (role === 'operate' && key.role !== 'operate') {
      throw new SluiceError('ROLE_TOO_LOW', `The key ${key.name} may only read.`)
    }
    return key.name
  }

  /** The key, or the subscriber whose token it is. Counted before the store is asked: what nobody has costs it no more than calls without a key do. */
  async #found(given: string, network: string): Promise<Key | string | undefined> {
    const { keys, ownerOf } = this.#parts
    const hashed = hash('sha256', given, 'base64url')
    if (!this.#good.has(hashed)) this.#count(this.#unproven, network, 'This address')
    const key = await keys.find(given)
    const owner = key === undefined ? await ownerOf(given) : undefined
    this.#good.delete(hashed)
    if (key === undefined && owner === undefined) return undefined
    this.#good.add(hashed)
    if (this.#good.size > REMEMBERED) this.#good.delete(this.#good.values().next().value ?? '')
    return key ?? owner
  }

  #subscriber(owner: string, own: string | undefined): string {
    // No key can be called so.
    const who = `subscriber:${owner}`
    this.#count(this.#byKey, who, 'This token')
    if (owner !== own) throw new SluiceError('NOT_YOURS', 'The token of a subscriber does not open this.')
    return who
  }

  /** Of one who was let in before. */
  async isStillIn({ headers }: RequestHead): Promise<boolean> {
    const { keys } = this.#parts
    const given = bearerOf(headers['authorization'])
    return given === undefined ? !(await keys.isAny()) : (await keys.find(given)) !== undefined
  }

  #refuse({ address }: RequestHead): never {
    this.#count(this.#failures, networkOf(address), 'This address')
    this.#parts.refused(address)
    throw new SluiceError('KEY_WRONG', 'Nobody has this key.')
  }

  async #stranger(head: RequestHead, connection: Connection): Promise<string> {
    this.#count(this.#byAddress, networkOf(head.address), 'This address')
    if (await this.#parts.keys.isAny()) throw new SluiceError('KEY_MISSING', 'The API is called with a key.')
    if (isOnTheMachine(head, connection)) return LOOPBACK
    throw new SluiceError('KEY_MISSING', 'Without any key the API answers only direct calls from the machine itself.')
  }

  #count(rate: RequestRate, who: string, said: string): void {
    const after = rate.refuses(who, this.#parts.monotonic())
    if (after !== undefined) throw new CallLater(`${said} calls too often.`, after)
  }
}

function bearerOf(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : (/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '')
}

/** What a browser is made to send by somebody else's page says where it comes from. */
function refuseCrossSite({ headers }: RequestHead): void {
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const { origin } = headers
  if (!isForeign && (origin === undefined || URL.parse(origin)?.host === headers['host'])) return
  throw new SluiceError('CROSS_SITE', 'The call was made by a page of another origin.')
}

/** What proxies add to what they pass on. */
const PASSED_ON =
  /^(?:x-forwarded-|x-original-|x-envoy-|forwarded$|via$|cdn-loop$|(?:cf-connecting|true-client|x-real|x-client|x-cluster-client)-ip$)/
const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i

/** A name that a stranger's page made point here, or a proxy on the same machine, is not the machine itself. */
function isOnTheMachine({ address, headers }: RequestHead, { isDirect }: Connection): boolean {
  if (!isDirect || !isLoopback(address) || !LOCAL_HOST.test(headers['host'] ?? '')) return false
  return !Object.keys(headers).some((name) => PASSED_ON.test(name))
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}
