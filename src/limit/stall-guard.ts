// `StallGuard` protects a rate against a blocked event loop. A call made just before the block leaves only after it, together with
// the calls that are due by then. The limit therefore pauses once after such a block (M1).
import type { Millis } from '../clock.ts'
import { computeSlack } from '../model/limit.ts'
import { pauseLimit, type RegulateDependencies } from './regulate.ts'
import type { SlotRequest } from './reservations.ts'

/** A call has left after this time, unless the event loop was blocked. */
const DEPARTURE_TIME = 5

interface DepartingCall {
  readonly limits: SlotRequest['limits']
  /** On the monotonic clock. */
  readonly by: Millis
}

export class StallGuard {
  readonly #deps: RegulateDependencies
  /** By limit: until when this process makes no call, on the monotonic clock. */
  readonly #held = new Map<string, Millis>()
  /** Calls that may not have left yet. */
  readonly #departing = new Set<DepartingCall>()

  constructor(deps: RegulateDependencies) {
    this.#deps = deps
  }

  /** `trackCall` records that a call under these limits starts now. */
  trackCall(limits: SlotRequest['limits']): void {
    const { clock } = this.#deps
    const leaving = { limits, by: clock.monotonic() + DEPARTURE_TIME }
    this.#departing.add(leaving)
    clock.after(DEPARTURE_TIME, () => this.#onLeft(leaving))
  }

  /** `holdTime` returns how long this process must make no call under these limits. */
  holdTime(limits: SlotRequest['limits']): Millis {
    // After a block, this code may run before any overdue timer does.
    const now = this.#deps.clock.monotonic()
    for (const leaving of this.#departing) if (leaving.by <= now) this.#onLeft(leaving)
    for (const [name, until] of this.#held) if (until <= now) this.#held.delete(name)
    return Math.max(0, ...limits.map(({ name }) => (this.#held.get(name) ?? now) - now))
  }

  #onLeft(leaving: DepartingCall): void {
    const late = this.#deps.clock.monotonic() - leaving.by
    if (!this.#departing.delete(leaving)) return
    for (const { name, per } of leaving.limits) if (late > computeSlack(per)) this.#hold(name, per)
  }

  /** `#hold` pauses the limit here at once, and in other processes through the store. */
  #hold(name: string, per: Millis): void {
    const now = this.#deps.clock.monotonic()
    // The calls of one block leave together and cause one pause.
    if ((this.#held.get(name) ?? now) >= now + per) return
    const long = per + computeSlack(per)
    this.#held.set(name, now + long)
    pauseLimit(this.#deps, name, long, false).catch(() => {})
  }
}
