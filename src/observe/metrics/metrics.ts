// `Metrics` counts for Prometheus from the start. It loads prom-client, which writes the text, on the first scrape.
import type { Registry } from 'prom-client'
import type { Clock, Millis } from '../../clock.ts'
import type { StatsReply, Store } from '../../store/contract/index.ts'
import type { Emitter, EventMap } from '../emitter.ts'
import { ProcessMetrics, StoreMetrics } from './catalogue.ts'
import { FollowUpRuns } from './follow-up-runs.ts'
import type { Series } from './series.ts'
import { limitLabel, meteredStore } from './metered-store.ts'
import { readDepths, type Depths } from '../stats/depth.ts'
import { eventEnds, emittedFacts } from '../stats/run-facts.ts'

export interface MetricsDependencies {
  readonly events: Pick<Emitter, 'on'>
  readonly clock: Clock
  /** The time of the store's clock. */
  readonly now: () => Millis
  readonly store: () => Promise<Store>
  /** The flows that the app declares. */
  readonly flows?: () => Iterable<string>
  /** The requests that this process refused, by source and code. */
  readonly countRefused?: () => readonly { readonly source: string; readonly reason: string; readonly count: number }[]
  /** The maximum size of the store in bytes, if it is bounded. */
  readonly maxBytes?: number
  /** The used share, 0 to 1, of the disk that holds the store's file, if the store is a file. */
  readonly diskUsed?: () => Promise<number | undefined>
}

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Reading all lanes is expensive, and a scrape every second does not need it each time. */
const CACHE_FOR: Millis = 10_000
const ENDINGS = ['done', 'snoozed', 'deferred', 'retry', 'partial', 'cancelled', 'lost', 'dead', 'dropped'] as const
const FINAL: ReadonlySet<(typeof ENDINGS)[number]> = new Set(['done', 'partial', 'dead', 'dropped'])

export class Metrics {
  readonly #deps: MetricsDependencies
  readonly #processMetrics = new ProcessMetrics()
  readonly #storeMetrics = new StoreMetrics()
  readonly #followUpRuns: FollowUpRuns
  #registry: Promise<Registry> | undefined
  #writing: Promise<string> | undefined
  #cachedDepths: { readonly at: Millis; readonly found: Promise<Depths> } | undefined

  constructor(parts: MetricsDependencies) {
    this.#deps = parts
    this.#followUpRuns = new FollowUpRuns((flow) => this.#processMetrics.followUpRuns.add(1, flow))
    const isDeclared = (flow: string): boolean => Iterator.from(parts.flows?.() ?? []).some((own) => own === flow)
    for (const series of [...this.#processMetrics.all, ...this.#storeMetrics.all]) series.setDeclaredFlows(isDeclared)
    this.#subscribe(parts.events)
  }

  /** `meterStore` returns the same store with its calls timed. */
  meterStore(store: Store): Store {
    return meteredStore(store, this.#deps.clock, this.#processMetrics)
  }

  /** `recordDelivery` takes one POST, or one failure of Sluice that prevented it. */
  recordDelivery(flow: string, outcome: string): void {
    this.#processMetrics.deliveries.add(1, flow, outcome)
  }

  recordLag(ms: Millis): void {
    this.#processMetrics.loopLag.observe(ms / 1_000)
  }

  /** `render` returns the text to serve as `METRICS_TYPE`. Concurrent calls share one result. */
  render(): Promise<string> {
    this.#writing ??= this.#renderAll().finally(() => (this.#writing = undefined))
    return this.#writing
  }

  async #renderAll(): Promise<string> {
    this.#registry ??= createRegistry([...this.#processMetrics.all, ...this.#storeMetrics.all])
    const registry = await this.#registry
    for (const flow of this.#deps.flows?.() ?? []) {
      this.#processMetrics.deadLetters.ensure(flow)
      for (const ending of ENDINGS) this.#processMetrics.attempts.ensure(flow, ending)
    }
    await this.#refresh()
    return registry.metrics()
  }

  #subscribe(events: MetricsDependencies['events']): void {
    const counted = this.#processMetrics
    events.on('event.received', ({ source }) => counted.received.add(1, source))
    events.on('event.duplicate', ({ source }) => counted.duplicates.add(1, source))
    events.on('event.conflict', ({ source }) => counted.conflicts.add(1, source))
    events.on('event.refused', ({ source, field }) => counted.refusedEvents.add(1, source, field))
    events.on('event.skipped', ({ flow }) => counted.skipped.add(1, flow))
    events.on('event.unrouted', ({ flow, reason }) => counted.unrouted.add(1, flow, reason))
    events.on('lane.due', ({ flow, late }) => counted.lateness.observe(late / 1_000, flow))
    events.on('limit.slowed', ({ limit }) => counted.limitRefusals.add(1, limitLabel(limit)))
    events.on('key.refused', () => counted.refusedKeys.add(1))
    events.on('api.failed', () => counted.apiFailures.add(1))
    // The part after the colon may contain a key, so it must not become a label.
    events.on('alert.raised', ({ alert }) => counted.alerts.add(1, alert.split(':', 1)[0]))
    events.on('run.started', (what) => {
      const facts = emittedFacts(what)
      if (facts !== undefined) this.#followUpRuns.recordStart(facts.lease)
    })
    for (const ending of ENDINGS) events.on(`run.${ending}`, (what) => this.#recordEnd(ending, what))
    for (const ending of ['done', 'dropped'] as const) {
      events.on(`run.${ending}`, ({ flow, counts }) => {
        for (const [name, by] of Object.entries(counts)) counted.counts.add(by, flow, name)
      })
    }
  }

  #recordEnd(ending: (typeof ENDINGS)[number], payload: EventMap[`run.${(typeof ENDINGS)[number]}`]): void {
    const counted = this.#processMetrics
    const { flow } = payload
    counted.attempts.add(1, flow, ending)
    const facts = emittedFacts(payload)
    if (facts === undefined || !FINAL.has(ending)) return
    const now = this.#deps.now()
    this.#followUpRuns.recordEnd(facts.lease, now)
    counted.runEvents.observe(payload.events, flow)
    const isDead =
      facts.outcome?.kind === 'dead' || (facts.outcome?.kind === 'partial' && facts.outcome.dead.length > 0)
    if (isDead) counted.deadLetters.add(1, flow)
    if (facts.lease.rank === 1) return
    const how = eventEnds(facts)
    for (const { id, arrived } of facts.lease.events) {
      if (how(id) === 'done') counted.arrivalToDone.observe(Math.max(0, now - arrived) / 1_000, flow)
    }
  }

  async #refresh(): Promise<void> {
    const { countRefused, maxBytes, diskUsed, now, clock } = this.#deps
    const used = await diskUsed?.()
    const current = this.#storeMetrics
    for (const series of Object.values(current)) series.clear()
    for (const { source, reason, count } of countRefused?.() ?? []) current.refusedRequests.add(count, source, reason)
    if (maxBytes !== undefined && maxBytes < Number.MAX_SAFE_INTEGER) current.maxBytes.add(maxBytes)
    if (used !== undefined) current.diskUsed.add(used)
    current.clockOffset.add((now() - clock.now()) / 1_000)
    try {
      const store = await this.#deps.store()
      this.#setStats(await store.stats())
      this.#setDepths(await this.#readDepths(store))
      current.up.add(1)
    } catch {
      // The counters of this process are still reported when the store is unavailable.
      current.up.add(0)
    }
  }

  #setStats({ flows, deadLetters, unrouted, limits, bytes, vacuum, memoryUsed, now }: StatsReply): void {
    const current = this.#storeMetrics
    for (const { flow, due = Infinity, paused } of flows) {
      current.oldest.setMax(Math.max(0, now - due) / 1_000, flow)
      current.paused.setMax(paused === undefined ? 0 : 1, flow)
    }
    current.deadLetters.add(deadLetters)
    for (const { reason, count } of unrouted) current.unroutedEvents.add(count, reason)
    for (const [limit, its] of Map.groupBy(limits, ({ name }) => limitLabel(name))) {
      const paused = Math.max(0, ...its.map(({ pausedUntil }) => pausedUntil - now))
      current.limitPaused.setMax(paused / 1_000, limit)
      current.limitBusy.setMax(Math.max(paused, ...its.map(({ last }) => last - now)) / 1_000, limit)
    }
    current.bytes.add(bytes)
    if (memoryUsed !== undefined) current.memoryUsed.add(memoryUsed)
    if (vacuum === undefined) return
    for (const [table, count] of Object.entries(vacuum.deadRows)) current.deadRows.add(count, table)
    current.oldestSnapshot.add((vacuum.oldestSnapshot?.age ?? 0) / 1_000)
  }

  #setDepths({ flows }: Depths): void {
    const { lanes, depth } = this.#storeMetrics
    for (const [flow, { waiting, failing, lanes: states }] of flows) {
      depth.add(waiting, flow, 'waiting')
      depth.add(failing, flow, 'failing')
      for (const [state, count] of Object.entries({ waiting: 0, ready: 0, ...states })) lanes.add(count, flow, state)
    }
  }

  #readDepths(store: Store): Promise<Depths> {
    const at = this.#deps.clock.monotonic()
    if (this.#cachedDepths === undefined || at - this.#cachedDepths.at >= CACHE_FOR) {
      const found = readDepths(store)
      this.#cachedDepths = { at, found }
      found.catch(() => (this.#cachedDepths = undefined))
    }
    return this.#cachedDepths.found
  }
}

/** The registry also holds the metrics of the process: memory, CPU time, handles, garbage collection and event loop. */
async function createRegistry(series: readonly Series[]): Promise<Registry> {
  const { collectDefaultMetrics, Registry: Made } = await import('prom-client')
  const registry = new Made()
  collectDefaultMetrics({ register: registry })
  // The registry only uses a metric's name and values, although its type asks for more.
  for (const one of series) registry.registerMetric(one as never)
  return registry
}
