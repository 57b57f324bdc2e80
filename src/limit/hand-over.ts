// A call is on its way only if the event loop goes on: one that was handed over just before the loop stood still reaches the
// other side when it goes on again, together with those whose time has come by then. So the limit then pauses once (M1).
import type { Clock, Millis } from '../clock.ts'
import { slack } from '../model/limit.ts'
import type { Store } from '../store/contract/index.ts'
import type { SlotRequest } from './slots.ts'

/** By then a call has left, unless something held it up. */
const ON_ITS_WAY = 5

export interface HandOverParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

export class HandOver {
  readonly #parts: HandOverParts
  /** By limit, on the monotonic clock. */
  readonly #held = new Map<string, Millis>()

  constructor(parts: HandOverParts) {
    this.#parts = parts
  }

  /** A call is being made under these limits now. */
  handed(limits: SlotRequest['limits']): void {
    const { clock } = this.#parts
    const at = clock.monotonic()
    clock.after(ON_ITS_WAY, () => {
      const late = clock.monotonic() - at - ON_ITS_WAY
      for (const { name, per } of limits) if (late > slack(per)) this.#hold(name, per)
    })
  }

  /** How long this process must make no call under these limits. */
  heldFor(limits: SlotRequest['limits']): Millis {
    const now = this.#parts.clock.monotonic()
    for (const [name, until] of this.#held) if (until <= now) this.#held.delete(name)
    return Math.max(0, ...limits.map(({ name }) => (this.#held.get(name) ?? now) - now))
  }

  /** Here at once; everywhere else as soon as the store knows. */
  #hold(name: string, per: Millis): void {
    const long = per + slack(per)
    this.#held.set(name, this.#parts.clock.monotonic() + long)
    const act = { kind: 'pause', for: long, slow: false } as const
    this.#parts
      .store()
      .then((store) => store.regulate({ name, act }))
      .catch(() => {})
  }
}
