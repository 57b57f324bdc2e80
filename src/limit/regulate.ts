// These functions write a pause, its end, or usage of a limit to the store and emit the events for it (M3).
import type { Clock, Millis } from '../clock.ts'
import type { LimitParameters } from '../model/limit.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { RegulateCall, RegulateReply, Store } from '../store/contract/index.ts'
import { liveRunContext } from './caller.ts'
import type { LimitMeter, LimitPause } from './meter.ts'
import { invalidOption } from '../validate/options.ts'

export interface RegulateDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly emit: AnyListener
  readonly pauses: PauseEvents
  readonly meter?: LimitMeter | undefined
}

/** `ObservedUsage` is the usage that an API reports, e.g. in its headers. */
export interface ObservedUsage {
  /** The number of used calls in its window. */
  used: number
  /** The number of calls it allows (default: `rate`). */
  of?: number
  /** When its next window starts: a date, or milliseconds since 1970. */
  resetsAt: Date | number
}

/** An earlier time is almost certainly a number of seconds instead of milliseconds. */
const EARLIEST: Millis = Date.UTC(2000, 0, 1)

type PauseRequest = Pick<LimitPause, 'cause' | 'status' | 'url'> & { readonly name: string; readonly for: Millis }

/** `pauseLimit` slows the limit as well, unless code paused it: a pause by hand says nothing about the rate. */
export async function pauseLimit(deps: RegulateDependencies, pause: PauseRequest): Promise<void> {
  const { name, for: duration, ...why } = pause
  const slow = why.cause === 'response'
  const { pausedFor } = await regulate(deps, { name, act: { kind: 'pause', for: duration, slow } })
  const flow = liveRunContext()?.flow
  deps.meter?.notePause(name, { ms: pausedFor, ...why, ...(flow !== undefined && { flow }) })
  deps.pauses.emitPaused(name, pausedFor)
  if (slow) deps.emit('limit.slowed', { limit: name })
}

/** `chargeLimit` counts `cost` calls as made now, in addition to those of its slots. */
export async function chargeLimit(
  deps: RegulateDependencies,
  { name, ...numbers }: LimitParameters & { readonly name: string },
): Promise<void> {
  await regulate(deps, { name, act: { kind: 'charge', numbers } })
}

export async function resumeLimit(deps: RegulateDependencies, name: string): Promise<void> {
  await regulate(deps, { name, act: { kind: 'resume' } })
  deps.pauses.emitResumed(name)
}

export async function observeLimit(
  deps: RegulateDependencies,
  limit: LimitParameters & { readonly name: string; readonly title: string },
  usage: ObservedUsage,
): Promise<void> {
  const { name, title, ...numbers } = limit
  const resetsIn = parseResetsAt(usage, title) - deps.clock.now()
  // A window that is over says nothing about the next one.
  if (resetsIn <= 0) return
  const used = parseUsed(usage, numbers.rate, title)
  const { pausedFor } = await regulate(deps, { name, act: { kind: 'observe', numbers, used, resetsIn } })
  if (used >= numbers.rate) deps.pauses.emitPaused(name, pausedFor)
}

/** The number of calls that the API still accepts counts, because it may allow more or fewer calls than our rate. */
function parseUsed({ used, of: allowed }: ObservedUsage, rate: number, title: string): number {
  for (const [option, value] of Object.entries({ used, of: allowed ?? rate })) {
    if (!Number.isFinite(value) || value < 0) {
      throw invalidOption(`${title}.observe: ${option} must be a number of calls; got ${String(value)}.`)
    }
  }
  return Math.max(0, rate - Math.max(0, (allowed ?? rate) - used))
}

function parseResetsAt({ resetsAt }: ObservedUsage, title: string): Millis {
  const at = Number(resetsAt)
  if (at >= EARLIEST && Number.isFinite(at)) return at
  throw invalidOption(
    `${title}.observe: resetsAt must be a Date or milliseconds (not seconds) since 1970; got ${String(resetsAt)}.`,
  )
}

async function regulate(deps: RegulateDependencies, call: RegulateCall): Promise<RegulateReply> {
  const store = await deps.store()
  return store.regulate(call)
}

/** `PauseEvents` emits `limit.paused`, and `limit.resumed` when a pause is ended or expires (M3). */
export class PauseEvents {
  readonly #deps: Pick<RegulateDependencies, 'clock' | 'emit'>
  /** Cancels the timer of each limit. */
  readonly #timers = new Map<string, () => void>()
  #isStopped = false

  constructor(deps: Pick<RegulateDependencies, 'clock' | 'emit'>) {
    this.#deps = deps
  }

  /** `ms` is the remaining time of the pause according to the store, so it replaces any earlier timer. */
  emitPaused(limit: string, ms: Millis): void {
    const { clock, emit } = this.#deps
    emit('limit.paused', { limit, ms })
    this.#cancelTimer(limit)
    if (this.#isStopped) return
    this.#timers.set(
      limit,
      clock.after(ms, () => this.emitResumed(limit)),
    )
  }

  emitResumed(limit: string): void {
    this.#cancelTimer(limit)
    this.#deps.emit('limit.resumed', { limit })
  }

  /** After `stop`, no pause emits its end any more. */
  stop(): void {
    this.#isStopped = true
    for (const limit of this.#timers.keys()) this.#cancelTimer(limit)
  }

  #cancelTimer(limit: string): void {
    this.#timers.get(limit)?.()
    this.#timers.delete(limit)
  }
}
