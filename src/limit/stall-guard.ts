// `StallGuard` protects a rate against a blocked event loop. A call made just before the block leaves only after it, together with
// the calls that are due by then. Such a call therefore counts once more, as used at the end of the block (M1).
import type { Millis } from '../clock.ts'
import { computeSlack } from '../model/limit.ts'
import { chargeLimit, type RegulateDependencies } from './regulate.ts'
import type { SlotRequest } from './reservations.ts'

/** A call has left after this time, unless the event loop was blocked. */
const DEPARTURE_TIME = 5

type Limits = SlotRequest['limits']

interface DepartingCall {
  readonly limits: Limits
  /** On the monotonic clock. */
  readonly by: Millis
}

export class StallGuard {
  readonly #deps: RegulateDependencies
  /** Calls that may not have left yet. */
  readonly #departing = new Set<DepartingCall>()
  /** By limit: the calls that left late and that the store does not know yet. The cost is that of all of them. */
  readonly #owed = new Map<string, Limits[number]>()
  readonly #charging = new Map<string, Promise<void>>()

  constructor(deps: RegulateDependencies) {
    this.#deps = deps
  }

  /** `trackCall` records that a call under these limits starts now. */
  trackCall(limits: Limits): void {
    const { clock } = this.#deps
    this.#departing.add({ limits, by: clock.monotonic() + DEPARTURE_TIME })
    clock.after(DEPARTURE_TIME, () => {
      // A charge that fails is repeated before the next call.
      this.settle(limits)?.catch(() => {})
    })
  }

  /**
   * `settle` returns undefined if a call under these limits may be made. Otherwise it returns a promise: the slot that the call has
   * is void, and the call takes another one when the promise resolves.
   */
  settle(limits: Limits): Promise<unknown> | undefined {
    // After a block, this code may run before any overdue timer does.
    this.#collectLate()
    const owing = limits.filter(({ name }) => this.#owed.has(name))
    return owing.length === 0 ? undefined : Promise.all(owing.map(({ name }) => this.#charge(name)))
  }

  #collectLate(): void {
    const now = this.#deps.clock.monotonic()
    for (const call of this.#departing) {
      if (call.by > now) continue
      this.#departing.delete(call)
      for (const limit of call.limits) {
        if (now - call.by <= computeSlack(limit.per)) continue
        const cost = limit.cost + (this.#owed.get(limit.name)?.cost ?? 0)
        this.#owed.set(limit.name, { ...limit, cost })
      }
    }
  }

  #charge(name: string): Promise<void> {
    const known = this.#charging.get(name)
    if (known !== undefined) return known
    const charging = this.#chargeOwed(name).finally(() => this.#charging.delete(name))
    this.#charging.set(name, charging)
    return charging
  }

  async #chargeOwed(name: string): Promise<void> {
    const owed = this.#owed.get(name)
    if (owed === undefined) return
    await chargeLimit(this.#deps, owed)
    // Another block may have added calls meanwhile.
    const cost = (this.#owed.get(name)?.cost ?? 0) - owed.cost
    if (cost > 0) this.#owed.set(name, { ...owed, cost })
    else this.#owed.delete(name)
  }
}
