// `RegistrationLimiter` bounds how many endpoints one address, and one key, may register, move, verify or test. This
// protects Sluice and third parties from a flood. Each process counts by itself, as it does for all requests.
import type { Millis } from '../clock.ts'
import { LOOPBACK_ACTOR } from '../admin/keys.ts'
import { toNetwork, RequestRateLimiter } from '../receive/rate.ts'
import { TooManyRequestsError } from './too-many-requests.ts'

export interface RegistrationRate {
  /** The rate of one address, and of one key. */
  readonly rate: number
  readonly per: Millis
}

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
