// How many subscribers one address, and one key, may register, move or have proven, and how often have them tested: whoever opens that to others is not
// flooded by one, nor made to flood somebody. Counted in each process by itself, as all requests are.
import type { Millis } from '../clock.ts'
import { LOOPBACK } from '../operate/keys.ts'
import { networkOf, RequestRate } from '../receive/request-rate.ts'
import { CallLater } from './call-later.ts'

export interface RegistrationRate {
  /** Of an address, and of a key. */
  readonly rate: number
  readonly per: Millis
}

export class Registrations {
  readonly #what: string
  readonly #monotonic: () => Millis
  readonly #byAddress: RequestRate
  readonly #byKey: RequestRate

  /** `what`: as in `This address asks for too many tests.` */
  constructor(what: string, { rate, per }: RegistrationRate, monotonic: () => Millis) {
    this.#what = what
    this.#monotonic = monotonic
    this.#byAddress = new RequestRate(rate, per)
    this.#byKey = new RequestRate(rate, per)
  }

  /** Throws if it is too much. */
  count(address: string, who: string): void {
    const now = this.#monotonic()
    this.#mustBeFree(this.#byAddress.refuses(networkOf(address), now), 'This address')
    if (who !== LOOPBACK) this.#mustBeFree(this.#byKey.refuses(who, now), `The key ${who}`)
  }

  #mustBeFree(after: Millis | undefined, said: string): void {
    if (after !== undefined) throw new CallLater(`${said} asks for too many ${this.#what}.`, after)
  }
}
