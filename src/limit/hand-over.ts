// A call is on its way only if the event loop goes on: one that was handed over just before the loop stood still reaches the
// other side when it goes on again, together with those whose time has come by then. So the limit then pauses once (M1).
import type { Millis } from '../clock.ts'
import { slack } from '../model/limit.ts'
import { pauseLimit, type RegulateParts } from './regulate.ts'
import type { SlotRequest } from './slots.ts'

/** By then a call has left, unless something held it up. */
const ON_ITS_WAY = 5

interface Leaving {
  readonly limits: SlotRequest['limits']
  /** On the monotonic clock. */
  readonly by: Millis
}

export class HandOver {
  readonly #parts: RegulateParts
  /** By limit, on the monotonic clock. */
  readonly #held = new Map<string, Millis>()
  /** Calls that may not have left yet. */
  readonly #leaving = new Set<Leaving>()

  constructor(parts: RegulateParts) {
    this.#parts = parts
  }

  /** A call is being made under these limits now. */
  handed(limits: SlotRequest['limits']): void {
    const { clock } = this.#parts
    const leaving = { limits, by: clock.monotonic() + ON_ITS_WAY }
    this.#leaving.add(leaving)
    clock.after(ON_ITS_WAY, () => this.#left(leaving))
  }

  /** How long this process must make no call under these limits. */
  heldFor(limits: SlotRequest['limits']): Millis {
    // After a stall a call may be about to be made before any timer has told of it.
    const now = this.#parts.clock.monotonic()
    for (const leaving of this.#leaving) if (leaving.by <= now) this.#left(leaving)
    for (const [name, until] of this.#held) if (until <= now) this.#held.delete(name)
    return Math.max(0, ...limits.map(({ name }) => (this.#held.get(name) ?? now) - now))
  }

  #left(leaving: Leaving): void {
    const late = this.#parts.clock.monotonic() - leaving.by
    if (!this.#leaving.delete(leaving)) return
    for (const { name, per } of leaving.limits) if (late > slack(per)) this.#hold(name, per)
  }

  /** Here at once; everywhere else as soon as the store knows. */
  #hold(name: string, per: Millis): void {
    const now = this.#parts.clock.monotonic()
    // Calls that one stall held up leave together: it is one pause.
    if ((this.#held.get(name) ?? now) >= now + per) return
    const long = per + slack(per)
    this.#held.set(name, now + long)
    pauseLimit(this.#parts, name, long, false).catch(() => {})
  }
}
