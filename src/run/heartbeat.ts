// Keeps the leases of live runs, hears of cancels and purges, and tells a run in good time that its lease is over (L1, L6c).
import { BusyMap } from '../busy-map.ts'
import type { Clock, Millis } from '../clock.ts'
import type { RenewReply, WorkStore } from '../store/contract/index.ts'
import type { LiveRun } from './live-run.ts'

export interface HeartbeatParts {
  readonly store: Pick<WorkStore, 'renew'>
  readonly clock: Clock
  readonly lease: Millis
  readonly every: Millis
  /** Before runs are renewed: what they run under must last longer than they do. */
  readonly before: () => Promise<void>
  /** Whether what it runs under lasts as long as it would. */
  readonly mayRenew: (run: LiveRun) => boolean
}

/** A run is told so long before the store may give its lane away. */
export function marginOf(lease: Millis): Millis {
  return Math.min(lease / 10, 2_000)
}

export class Heartbeat {
  readonly #parts: HeartbeatParts
  readonly #live = new BusyMap<number, LiveRun>()
  #beating: (() => void) | undefined
  #watching: (() => void) | undefined

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  get live(): Iterable<LiveRun> {
    return this.#live.values()
  }

  get count(): number {
    return this.#live.size
  }

  add(run: LiveRun): void {
    const { clock, every } = this.#parts
    this.#live.set(run.lease.token, run)
    this.#beating ??= clock.after(every, () => void this.#beat())
    // The answer to its claim was on its way for most of the lease: no beat comes in time.
    if (run.endsAt < clock.monotonic() + every) this.#watch()
  }

  remove(run: LiveRun): void {
    this.#live.delete(run.lease.token)
    if (this.#live.size > 0) return
    this.#beating?.()
    this.#watching?.()
    this.#beating = undefined
    this.#watching = undefined
  }

  /** It may have been cancelled: the store knows. Whoever says so may be anybody. */
  mayBeCancelled(token: number): void {
    const run = this.#live.get(token)
    // Should it not answer, the next beat hears of it.
    if (run !== undefined) this.#renew(this.#renewable([run]), false).catch(() => {})
  }

  /** The point of no return: asks the store, which knows whether somebody was first (L6c). */
  async commit(run: LiveRun): Promise<'ok' | 'cancelled'> {
    const answer = await this.#renew([run], true)
    if (answer[0] === 'ok') {
      run.committed = true
      return 'ok'
    }
    if (answer[0] !== 'cancel') throw run.signal.reason
    return 'cancelled'
  }

  async #beat(): Promise<void> {
    // The store may not answer at all: leases end all the same, and the next beat asks again.
    this.#beating = this.#parts.clock.after(this.#parts.every, () => void this.#beat())
    this.#watch()
    try {
      await this.#parts.before()
      await this.#renew(this.#renewable(this.#live.values()), false)
    } catch {
      // The next beat tries again; until then the watch below counts the time.
    }
    this.#watch()
  }

  #renewable(runs: Iterable<LiveRun>): readonly LiveRun[] {
    return [...runs].filter((run) => run.cause !== 'lost' && this.#parts.mayRenew(run))
  }

  async #renew(runs: readonly LiveRun[], commit: boolean): Promise<RenewReply['results']> {
    if (runs.length === 0) return []
    const { clock, store, lease } = this.#parts
    const sent = clock.monotonic()
    const asked = runs.map((run) => ({ lane: run.lease.lane, token: run.lease.token, commit }))
    const { results } = await store.renew({ lease, runs: asked })
    for (const [at, run] of runs.entries()) {
      const answer = results[at]
      if (answer === 'lost') run.abort('lost')
      else run.endsAt = sent + lease - marginOf(lease)
      if (answer === 'cancel') run.abort('cancel')
      if (answer === 'purged') run.abort('purged')
    }
    return results
  }

  /** Wakes when the first lease is over, should it not be renewed by then. */
  #watch(): void {
    this.#watching?.()
    this.#watching = undefined
    const first = Math.min(...Array.from(this.#live.values(), (run) => (run.cause === 'lost' ? Infinity : run.endsAt)))
    if (first === Infinity) return
    this.#watching = this.#parts.clock.after(Math.max(0, first - this.#parts.clock.monotonic()), () => this.#lapse())
  }

  #lapse(): void {
    const now = this.#parts.clock.monotonic()
    for (const run of this.#live.values()) if (run.endsAt <= now) run.abort('lost')
    this.#watch()
  }
}
