// The alerts of an app, put together: what it declares, how they stand, the figures they are asked over, and who looks.
import type { Clock, Millis } from './clock.ts'
import { SluiceError } from './errors.ts'
import type { AlertFigures, AlertRule, AlertWindow } from './model/alert.ts'
import type { Duration } from './model/duration.ts'
import type { AnyListener } from './observe/events.ts'
import type { Opening } from './opening.ts'
import { alertRule, Alerts, windowOf, type AlertOptions } from './operate/alerts.ts'
import { countAll } from './operate/count-all.ts'
import type { Figures } from './operate/figures.ts'
import { figuresOver, type Gathered } from './operate/stats.ts'
import type { Publisher } from './receive/publisher.ts'
import type { Store } from './store/contract/index.ts'
import { alertsLeft } from './upkeep/alerts-left.ts'
import { alerting, type AlertParts } from './upkeep/alerts.ts'
import type { Chore } from './upkeep/upkeep.ts'

export interface AlertingParts {
  readonly clock: Clock
  readonly opening: Opening
  readonly publisher: Publisher
  readonly emit: AnyListener
  readonly figures: Pick<Figures, 'gather' | 'keepBytes'>
}

const DAY: Millis = 24 * 3_600_000

export class Alerting {
  readonly alerts: Alerts
  readonly #parts: AlertingParts
  readonly #rules: AlertRule[] = []

  constructor(parts: AlertingParts) {
    this.#parts = parts
    this.alerts = new Alerts(parts.opening.store, this.#rules)
  }

  declare(name: string, options: AlertOptions): void {
    const rule = alertRule(name, options)
    if (this.#rules.some((one) => one.name === name)) {
      throw new SluiceError('CONFIG_INVALID', `there are two alerts named ${JSON.stringify(name)}; rename one.`)
    }
    this.#rules.push(rule)
  }

  chores(store: Store, process: string): readonly Chore[] {
    const { publisher, emit } = this.#parts
    const parts: AlertParts = {
      store,
      process,
      rules: this.#rules,
      figures: () => this.#figures(store),
      publish: (event) => publisher.publish([event]),
      emit,
    }
    return [alerting(parts) ?? [], alertsLeft(parts)].flat()
  }

  async #figures(store: Store): Promise<AlertFigures> {
    const { clock, opening, figures } = this.#parts
    const [stats, gathered] = await Promise.all([store.stats(), figures.gather(DAY)])
    const { now } = stats
    const going = stats.flows.filter(({ paused }) => paused === undefined)
    const { p95, failureRate } = windowed(gathered, DAY)
    return {
      now,
      p95,
      failureRate,
      over: (window: Duration) => windowed(gathered, windowOf(window, 'over')),
      deadLetters: await countAll(store, { kind: 'dead', filter: { from: now - DAY } }),
      depth: going.reduce((sum, { flow }) => sum + (gathered.depths.flows.get(flow)?.lanes.ready ?? 0), 0),
      oldest: Math.max(0, ...going.map(({ due = now }) => now - due)),
      storeBytes: stats.bytes,
      diskUsed: await opening.diskUsed(),
      keepBytes: figures.keepBytes,
      limits: stats.limits.map(({ name, pausedUntil, last }) => {
        const pausedFor = Math.max(0, pausedUntil - now)
        return { name, pausedFor, waitsFor: Math.max(pausedFor, last - now) }
      }),
      clockOffset: clock.now() - opening.time.now(),
      deadRows: stats.hygiene && sumOf(Object.values(stats.hygiene.deadRows)),
      snapshot: stats.hygiene?.oldest,
    }
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

function windowed(gathered: Gathered, window: Millis): AlertWindow {
  const { p95Ms: p95, failureRate, done, dropped, dead, failing } = figuresOver(gathered, window)
  return { p95, failureRate, done, ended: done + dropped + dead + failing }
}
