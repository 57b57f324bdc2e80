// The alerts of an app, put together: what it declares, how they stand, the figures they are asked over, and who looks.
import type { Clock, Millis } from './clock.ts'
import { SluiceError } from './errors.ts'
import type { AlertFigures, AlertRule } from './model/alert.ts'
import type { AnyListener } from './observe/events.ts'
import type { Opening } from './opening.ts'
import { alertRule, Alerts, type AlertOptions } from './operate/alerts.ts'
import { countAll } from './operate/count-all.ts'
import type { Figures } from './operate/figures.ts'
import type { Publisher } from './receive/publisher.ts'
import type { Store } from './store/contract/index.ts'
import { alerting } from './upkeep/alerts.ts'
import type { Chore } from './upkeep/upkeep.ts'

export interface AlertingParts {
  readonly clock: Clock
  readonly opening: Opening
  readonly publisher: Publisher
  readonly emit: AnyListener
  readonly stats: Figures['stats']
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
    const chore = alerting({
      store,
      process,
      rules: this.#rules,
      figures: () => this.#figures(store),
      publish: (event) => publisher.publish([event]),
      emit,
    })
    return chore === undefined ? [] : [chore]
  }

  async #figures(store: Store): Promise<AlertFigures> {
    const { clock, opening } = this.#parts
    const [stats, { total }] = await Promise.all([store.stats(), this.#parts.stats({ window: '24h' })])
    const { now } = stats
    const lateBy = stats.flows.map(({ due, paused }) => (due === undefined || paused !== undefined ? 0 : now - due))
    return {
      now,
      p95: total.p95Ms,
      failureRate: total.failureRate,
      deadLetters: await countAll(store, { kind: 'dead', filter: { from: now - DAY } }),
      depth: stats.flows.reduce((sum, { lanes }) => sum + lanes, 0),
      oldest: Math.max(0, ...lateBy),
      storeBytes: stats.bytes,
      limits: stats.limits.map(({ name, pausedUntil }) => ({ name, pausedFor: Math.max(0, pausedUntil - now) })),
      clockOffset: clock.now() - opening.time.now(),
    }
  }
}
