// Metrics for Prometheus: plain counters from the start, and the library that writes the text loaded when somebody asks.
import type { Registry } from 'prom-client'
import type { Clock, Millis } from '../clock.ts'
import type { StatsReply, Store } from '../store/contract/index.ts'
import type { Emitter, EventMap } from './events.ts'
import { Counted, Looked } from './metrics-catalogue.ts'
import { Reruns } from './metrics-reruns.ts'
import type { Series } from './metrics-series.ts'
import { baseOf, meteredStore } from './metrics-store.ts'
import { depthsOf, type Depths } from './tallies-depth.ts'
import { endOf, factsOf } from './tallies-facts.ts'

export interface MetricsParts {
  readonly events: Pick<Emitter, 'on'>
  readonly clock: Clock
  /** The store's time. */
  readonly now: () => Millis
  readonly store: () => Promise<Store>
  /** Those that the app declares. */
  readonly flows?: () => Iterable<string>
  /** Requests that were refused in this process, by source and code. */
  readonly refusals?: () => readonly { readonly source: string; readonly reason: string; readonly count: number }[]
  /** The most bytes the store may take, if that is bounded. */
  readonly maxBytes?: number
  /** From 0 to 1, of the disk that its file lies on, if it is one. */
  readonly diskUsed?: () => Promise<number | undefined>
}

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Looking at all lanes is dear, and whoever scrapes every second does not need it as often. */
const LOOK_EVERY: Millis = 10_000
const ENDINGS = ['done', 'again', 'retry', 'partial', 'cancelled', 'lost', 'dead', 'dropped'] as const
const FINAL: ReadonlySet<(typeof ENDINGS)[number]> = new Set(['done', 'partial', 'dead', 'dropped'])

export class Metrics {
  readonly #parts: MetricsParts
  readonly #counted = new Counted()
  readonly #looked = new Looked()
  readonly #reruns: Reruns
  #registry: Promise<Registry> | undefined
  #writing: Promise<string> | undefined
  #depths: { readonly at: Millis; readonly found: Promise<Depths> } | undefined

  constructor(parts: MetricsParts) {
    this.#parts = parts
    this.#reruns = new Reruns(parts.now, (flow) => this.#counted.reruns.add(1, flow))
    const isDeclared = (flow: string): boolean => Iterator.from(parts.flows?.() ?? []).some((own) => own === flow)
    for (const series of [...this.#counted.all, ...this.#looked.all]) series.keepFlows(isDeclared)
    this.#follow(parts.events)
  }

  /** The same store, its calls timed. */
  metered(store: Store): Store {
    return meteredStore(store, this.#parts.clock, this.#counted)
  }

  lagged(ms: Millis): void {
    this.#counted.loopLag.seen(ms / 1_000)
  }

  /** To be served as `METRICS_TYPE`. Those who ask at the same time get the same. */
  text(): Promise<string> {
    this.#writing ??= this.#written().finally(() => (this.#writing = undefined))
    return this.#writing
  }

  async #written(): Promise<string> {
    this.#registry ??= registryOf([...this.#counted.all, ...this.#looked.all])
    const registry = await this.#registry
    for (const flow of this.#parts.flows?.() ?? []) {
      this.#counted.deadLetters.touch(flow)
      for (const ending of ENDINGS) this.#counted.attempts.touch(flow, ending)
    }
    await this.#look()
    return registry.metrics()
  }

  #follow(events: MetricsParts['events']): void {
    const counted = this.#counted
    events.on('event.received', ({ source }) => counted.received.add(1, source))
    events.on('event.duplicate', ({ source }) => counted.duplicates.add(1, source))
    events.on('event.conflict', ({ source }) => counted.conflicts.add(1, source))
    events.on('event.refused', ({ source, field }) => counted.refusedEvents.add(1, source, field))
    events.on('event.skipped', ({ flow }) => counted.skipped.add(1, flow))
    events.on('event.unrouted', ({ flow, reason }) => counted.unrouted.add(1, flow, reason))
    events.on('lane.due', ({ flow, late }) => counted.lateness.seen(late / 1_000, flow))
    events.on('limit.slowed', ({ limit }) => counted.limitRefusals.add(1, baseOf(limit)))
    events.on('key.refused', () => counted.refusedKeys.add(1))
    events.on('api.failed', () => counted.apiFailures.add(1))
    // What comes after the colon may be a key.
    events.on('alert.raised', ({ alert }) => counted.alerts.add(1, alert.split(':', 1)[0]))
    events.on('run.started', (what) => {
      const facts = factsOf(what)
      if (facts !== undefined) this.#reruns.began(facts.lease)
    })
    for (const ending of ENDINGS) events.on(`run.${ending}`, (what) => this.#ended(ending, what))
  }

  #ended(ending: (typeof ENDINGS)[number], what: EventMap[`run.${(typeof ENDINGS)[number]}`]): void {
    const counted = this.#counted
    const { flow } = what
    counted.attempts.add(1, flow, ending)
    const facts = factsOf(what)
    if (facts === undefined || !FINAL.has(ending)) return
    this.#reruns.ended(facts.lease)
    counted.runEvents.seen(what.events, flow)
    const isDead =
      facts.outcome?.kind === 'dead' || (facts.outcome?.kind === 'partial' && facts.outcome.dead.length > 0)
    if (isDead) counted.deadLetters.add(1, flow)
    if (facts.lease.rank === 1) return
    const now = this.#parts.now()
    const how = endOf(facts)
    for (const { id, arrived } of facts.lease.events) {
      if (how(id) === 'done') counted.doneAfter.seen(Math.max(0, now - arrived) / 1_000, flow)
    }
  }

  async #look(): Promise<void> {
    const { refusals, maxBytes, diskUsed, now, clock } = this.#parts
    const used = await diskUsed?.()
    const looked = this.#looked
    for (const series of Object.values(looked)) series.clear()
    for (const { source, reason, count } of refusals?.() ?? []) looked.refusedRequests.add(count, source, reason)
    if (maxBytes !== undefined && maxBytes < Number.MAX_SAFE_INTEGER) looked.room.add(maxBytes)
    if (used !== undefined) looked.diskUsed.add(used)
    looked.clockOffset.add((now() - clock.now()) / 1_000)
    try {
      const store = await this.#parts.store()
      this.#lookAt(await store.stats())
      this.#lookAtLanes(await this.#depthsOf(store))
      looked.up.add(1)
    } catch {
      // A store that does not answer is no reason not to tell what was counted.
      looked.up.add(0)
    }
  }

  #lookAt({ flows, letters, marks, limits, bytes, hygiene, now }: StatsReply): void {
    const looked = this.#looked
    for (const { flow, due = Infinity, paused } of flows) {
      looked.oldest.most(Math.max(0, now - due) / 1_000, flow)
      looked.paused.most(paused === undefined ? 0 : 1, flow)
    }
    looked.letters.add(letters)
    for (const { reason, count } of marks) looked.marks.add(count, reason)
    for (const [limit, its] of Map.groupBy(limits, ({ name }) => baseOf(name))) {
      const paused = Math.max(0, ...its.map(({ pausedUntil }) => pausedUntil - now))
      looked.limitPaused.most(paused / 1_000, limit)
      looked.limitBusy.most(Math.max(paused, ...its.map(({ last }) => last - now)) / 1_000, limit)
    }
    looked.bytes.add(bytes)
    if (hygiene === undefined) return
    for (const [table, count] of Object.entries(hygiene.deadRows)) looked.deadRows.add(count, table)
    looked.oldestSnapshot.add((hygiene.oldest?.age ?? 0) / 1_000)
  }

  #lookAtLanes({ flows }: Depths): void {
    const { lanes, depth } = this.#looked
    for (const [flow, { waiting, failing, lanes: states }] of flows) {
      depth.add(waiting, flow, 'waiting')
      depth.add(failing, flow, 'failing')
      for (const [state, count] of Object.entries({ waiting: 0, ready: 0, ...states })) lanes.add(count, flow, state)
    }
  }

  #depthsOf(store: Store): Promise<Depths> {
    const at = this.#parts.clock.monotonic()
    if (this.#depths === undefined || at - this.#depths.at >= LOOK_EVERY) {
      const found = depthsOf(store)
      this.#depths = { at, found }
      found.catch(() => (this.#depths = undefined))
    }
    return this.#depths.found
  }
}

/** With those of the process itself: memory, processor time, handles, garbage collection, event loop. */
async function registryOf(series: readonly Series[]): Promise<Registry> {
  const { collectDefaultMetrics, Registry: Made } = await import('prom-client')
  const registry = new Made()
  collectDefaultMetrics({ register: registry })
  // The registry asks a metric for no more than its name and values, whatever its type says.
  for (const one of series) registry.registerMetric(one as never)
  return registry
}
