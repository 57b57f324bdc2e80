// `Heartbeat` renews the leases of live runs, learns of cancels and purges, and aborts a run before its lease expires (L1, L6c).
import { ChurnMap } from '../churn-map.ts'
import type { Clock, Millis } from '../clock.ts'
import type { RenewReply, WorkStore } from '../store/contract/index.ts'
import type { LiveRun } from './live-run.ts'

export interface HeartbeatDependencies {
  readonly store: Pick<WorkStore, 'renew'>
  readonly clock: Clock
  readonly lease: Millis
  readonly every: Millis
  /** Runs before each renewal: it renews the permits, which must outlast the runs. */
  readonly beforeRenew: () => Promise<void>
  /** Returns whether the permit of the run outlasts a renewed lease. */
  readonly mayRenew: (run: LiveRun) => boolean
}

/** `leaseMargin` returns how long before the lease expires the run is aborted. */
export function leaseMargin(lease: Millis): Millis {
  return Math.min(lease / 10, 2_000)
}

export class Heartbeat {
  readonly #deps: HeartbeatDependencies
  readonly #live = new ChurnMap<number, LiveRun>()
  #beatTimer: (() => void) | undefined
  #watchTimer: (() => void) | undefined

  constructor(deps: HeartbeatDependencies) {
    this.#deps = deps
  }

  get live(): Iterable<LiveRun> {
    return this.#live.values()
  }

  get count(): number {
    return this.#live.size
  }

  add(run: LiveRun): void {
    const { clock, every } = this.#deps
    this.#live.set(run.lease.token, run)
    this.#beatTimer ??= clock.after(every, () => void this.#beat())
    // The reply to the claim took most of the lease, so the next beat would be too late.
    if (run.endsAt < run.startedAt + every) this.#watch()
  }

  remove(run: LiveRun): void {
    this.#live.delete(run.lease.token)
    if (this.#live.size > 0) return
    this.#beatTimer?.()
    this.#watchTimer?.()
    this.#beatTimer = undefined
    this.#watchTimer = undefined
  }

  /** `checkCancelled` asks the store whether the run was cancelled. The hint alone is not trusted. */
  checkCancelled(token: number): void {
    const run = this.#live.get(token)
    // If this call fails, the next beat learns of the cancel.
    if (run !== undefined) this.#renew(this.#renewable([run]), false).catch(() => {})
  }

  /** `commit` is the point of no return. The store decides whether a cancel came first (L6c). */
  async commit(run: LiveRun): Promise<'ok' | 'cancelled'> {
    if (run.commit === 'not-called') run.commit = 'unanswered'
    const [result] = await this.#renew([run], true)
    if (result !== 'ok' && result !== 'cancel') throw run.signal.reason
    run.commit = result === 'ok' ? 'ok' : 'cancelled'
    return run.commit
  }

  async #beat(): Promise<void> {
    // The next beat is set first, because the store may never answer this one. Leases expire all the same.
    this.#beatTimer = this.#deps.clock.after(this.#deps.every, () => void this.#beat())
    this.#watch()
    try {
      await this.#deps.beforeRenew()
      await this.#renew(this.#renewable(this.#live.values()), false)
    } catch {
      // The next beat tries again. Until then, the watch below aborts runs whose lease expires.
    }
    this.#watch()
  }

  #renewable(runs: Iterable<LiveRun>): readonly LiveRun[] {
    return [...runs].filter((run) => run.abortCause !== 'lost' && this.#deps.mayRenew(run))
  }

  async #renew(runs: readonly LiveRun[], commit: boolean): Promise<RenewReply['results']> {
    if (runs.length === 0) return []
    const { clock, store, lease } = this.#deps
    const sent = clock.monotonic()
    const asked = runs.map((run) => ({ lane: run.lease.lane, token: run.lease.token, commit }))
    const { results } = await store.renew({ lease, runs: asked })
    for (const [at, run] of runs.entries()) {
      const result = results[at]
      if (result === 'lost') run.abort('lost')
      else run.endsAt = sent + lease - leaseMargin(lease)
      if (result === 'cancel') run.abort('cancel')
      if (result === 'purged') run.abort('purged')
    }
    return results
  }

  /** `#watch` sets a timer for the first lease to expire without a renewal. */
  #watch(): void {
    this.#watchTimer?.()
    this.#watchTimer = undefined
    const first = Math.min(
      ...Array.from(this.#live.values(), (run) => (run.abortCause === 'lost' ? Infinity : run.endsAt)),
    )
    if (first === Infinity) return
    this.#watchTimer = this.#deps.clock.after(Math.max(0, first - this.#deps.clock.monotonic()), () =>
      this.#abortLapsed(),
    )
  }

  #abortLapsed(): void {
    const now = this.#deps.clock.monotonic()
    for (const run of this.#live.values()) if (run.endsAt <= now) run.abort('lost')
    this.#watch()
  }
}
