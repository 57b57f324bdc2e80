// `Limits` shows the limits to operators, and pauses or resumes one for every process.
import { NEVER, type Millis } from '../clock.ts'
import type { Limit } from '../limit/limit.ts'
import type { LimitMeter, LimitPause, LimitSpending } from '../limit/meter.ts'
import type { LaneId } from '../model/identity.ts'
import type { ExplainDependencies } from '../observe/explain/explain.ts'
import type { LaneScan } from '../observe/status/lane-scan.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { LimitStats, RegulateCall, Store } from '../store/contract/index.ts'
import type { Page } from './pages.ts'

export interface LimitView {
  readonly name: string
  /** Whether this app declares the limit. A limit from `limit.per(key)` counts as declared with its parent. */
  readonly declared: boolean
  /** Every pause or resume raises the epoch, which voids the slots that were reserved before. 0 until the first use. */
  readonly epoch: number
  readonly pausedUntil: Millis | undefined
  /** The declared values; undefined if this app does not declare the limit. A burst of 0 is an exact window. */
  readonly rate: number | undefined
  readonly per: Millis | undefined
  readonly burst: number | undefined
  /** The factor by which `per` is longer since the other side sent a 429; undefined without one. */
  readonly stretch: number | undefined
  /** `lastSlot` while it is in the future, i.e. while callers wait for their slots; otherwise undefined. */
  readonly busyUntil: Millis | undefined
  /** The share of the rate that this process used over the last minute, or over `per` if that is longer. */
  readonly used: number | undefined
  /** The flows that called under the limit in the last 15 minutes in this process, the busiest first, and those that wait for it. */
  readonly flows: readonly string[]
  /** Lanes whose run was deferred by the limit, and live runs of this process that wait for a slot. */
  readonly waiting: number
  /** The time of the last slot that was given or promised, in the past or the future. Undefined before the first slot. */
  readonly lastSlot: Millis | undefined
  /** Why the limit is paused, if it was paused in this process. */
  readonly paused: LimitPause | undefined
}

/** A lane that waits for the limit. */
export interface SlotWaiter {
  readonly at: Millis
  readonly flow: string
  /** The first 256 characters of the key. */
  readonly key: string
  readonly lane: LaneId
}

export interface LimitUsage extends LimitSpending {
  /** Who gets the next slots, at most 20, as far as this process knows. */
  readonly slots: readonly SlotWaiter[]
}

export interface LimitAdminDependencies {
  readonly store: () => Promise<Store>
  readonly declared: ReadonlyMap<string, Limit>
  readonly emit: AnyListener
  readonly meter: LimitMeter
  readonly scan: LaneScan
  readonly work: () => Promise<Pick<ExplainDependencies, 'findSlotWait'>>
}

const MAX_WAITERS_SHOWN = 20

export class Limits {
  readonly #deps: LimitAdminDependencies

  constructor(deps: LimitAdminDependencies) {
    this.#deps = deps
  }

  /** `list` returns, by name, all declared limits and up to 1,000 recently used ones. `cursor` is the last name. */
  async list(cursor = '', n = 100): Promise<Page<LimitView>> {
    const all = (await this.#listAll()).filter(({ name }) => name > cursor)
    const items = all.slice(0, n)
    return { items, next: all.length > n ? items.at(-1)?.name : undefined }
  }

  async show(name: string): Promise<LimitView | undefined> {
    return (await this.#listAll()).find((limit) => limit.name === name) ?? this.#unusedView(name)
  }

  /** `usage` returns who spent the limit over the last 15 minutes in this process, why it was paused, and who waits for it. */
  async usage(name: string): Promise<LimitUsage | undefined> {
    if ((await this.show(name)) === undefined) return undefined
    const waiters = (await this.#findWaiters()).filter(({ limit }) => limit === name)
    const slots = waiters.map(({ at, flow, key, lane }) => ({ at, flow, key, lane }))
    return {
      ...this.#deps.meter.read(name),
      slots: slots.toSorted((one, other) => one.at - other.at).slice(0, MAX_WAITERS_SHOWN),
    }
  }

  /** `pause` applies to every process. It returns `missing` for an unknown limit. */
  async pause(name: string, options: { readonly for: Duration; readonly by?: string }): Promise<'ok' | 'missing'> {
    const duration = Math.min(parseDuration(options.for, 'limits: for'), NEVER)
    const limit = this.#findDeclared(name)
    if (limit !== undefined) await limit.pause(duration)
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      const { pausedFor } = await this.#regulate({ name, act: { kind: 'pause', for: duration, slow: false } })
      this.#deps.emit('limit.paused', { limit: name, ms: pausedFor })
    }
    this.#deps.meter.notePause(name, {
      ms: duration,
      cause: 'operator',
      ...(options.by !== undefined && { by: options.by }),
    })
    return 'ok'
  }

  /** `resume` ends a pause and the slower rate after it. */
  async resume(name: string): Promise<'ok' | 'missing'> {
    const limit = this.#findDeclared(name)
    if (limit !== undefined) await limit.resume()
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      await this.#regulate({ name, act: { kind: 'resume' } })
      this.#deps.emit('limit.resumed', { limit: name })
    }
    return 'ok'
  }

  #findDeclared(name: string): Limit | undefined {
    const { own, key } = splitLimitName(name)
    const limit = this.#deps.declared.get(own)
    if (key === undefined) return limit
    return key === '' ? undefined : limit?.per(key)
  }

  async #isKnown(name: string): Promise<boolean> {
    const store = await this.#deps.store()
    return (await store.stats()).limits.some((limit) => limit.name === name)
  }

  async #regulate(call: RegulateCall): ReturnType<Store['regulate']> {
    const store = await this.#deps.store()
    return store.regulate(call)
  }

  #unusedView(name: string): LimitView | undefined {
    return this.#findDeclared(name) === undefined
      ? undefined
      : this.#toView({ name, epoch: 0, pausedUntil: 0, last: 0, stretch: 1 }, 0, [])
  }

  /** Returns the lanes that wait for any limit: those with a deferred run, and those whose live run waits for a slot in this process. */
  async #findWaiters(): Promise<readonly (SlotWaiter & { readonly limit: string })[]> {
    const [{ lanes }, work] = await Promise.all([this.#deps.scan.read(), this.#deps.work()])
    return lanes.flatMap((lane) => {
      const { id, flow, keyStart, deferredBy, run } = lane
      if (deferredBy !== undefined) return { limit: deferredBy, at: lane.due, flow, key: keyStart, lane: id }
      const slot = run?.state === 'running' ? work.findSlotWait(run.id) : undefined
      return slot === undefined ? [] : { limit: slot.limit, at: slot.until, flow, key: keyStart, lane: id }
    })
  }

  #toView(
    { name, epoch, pausedUntil, last, stretch }: LimitStats,
    now: Millis,
    waiters: readonly Pick<SlotWaiter, 'flow'>[],
  ): LimitView {
    const spenders = this.#deps.meter.read(name).spenders.filter(({ flow, total }) => flow !== '' && total > 0)
    const { rate, per, burst } = this.#deps.declared.get(splitLimitName(name).own)?.numbers ?? UNDECLARED_NUMBERS
    return {
      name,
      declared: rate !== undefined,
      epoch,
      pausedUntil: pausedUntil > now ? pausedUntil : undefined,
      rate,
      per,
      burst,
      stretch: stretch > 1 ? stretch : undefined,
      busyUntil: last > now ? last : undefined,
      used: rate === undefined || per === undefined ? undefined : this.#deps.meter.findUsedShare(name, { rate, per }),
      flows: [...new Set([...spenders, ...waiters].map(({ flow }) => flow))],
      waiting: waiters.length,
      lastSlot: last > 0 ? last : undefined,
      paused: pausedUntil > now ? this.#deps.meter.read(name).pauses[0] : undefined,
    }
  }

  async #listAll(): Promise<readonly LimitView[]> {
    const store = await this.#deps.store()
    const { limits, now } = await store.stats()
    const waiting = Map.groupBy(await this.#findWaiters(), ({ limit }) => limit)
    const used = limits.map((limit) => this.#toView(limit, now, waiting.get(limit.name) ?? []))
    const known = new Set(used.map(({ name }) => name))
    const unused = [...this.#deps.declared.keys()].filter((name) => !known.has(name))
    const all = [...used, ...unused.flatMap((name) => this.#unusedView(name) ?? [])]
    return all.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  }
}

const UNDECLARED_NUMBERS: { readonly [N in keyof Limit['numbers']]: undefined } = {
  rate: undefined,
  per: undefined,
  burst: undefined,
}

/** Splits `<limit>/<key>`, the name of a limit from `limit.per(key)`. Without a slash, there is no key. */
function splitLimitName(name: string): { readonly own: string; readonly key: string | undefined } {
  const slash = name.indexOf('/')
  return slash < 0 ? { own: name, key: undefined } : { own: name.slice(0, slash), key: name.slice(slash + 1) }
}
