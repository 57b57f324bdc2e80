// `Alerting` connects the alerts of an app: the declared rules, their state, the stats they read, and the task that checks them.
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { AlertStats, AlertRule, AlertWindowStats } from '../model/alert.ts'
import type { Duration } from '../model/duration.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { StoreHandle } from './store-handle.ts'
import { createAlertRule, Alerts, parseAlertWindow, type AlertOptions } from '../admin/alerts.ts'
import { countAll } from '../admin/pages.ts'
import { collectStats, computeWindowStats, type CollectedStats, type StatsDependencies } from '../admin/stats.ts'
import type { Publisher } from '../publish/publisher.ts'
import type { StatsReply, Store } from '../store/contract/index.ts'
import { createAlertTask, createStaleAlertTask, type AlertTaskDependencies } from '../maintain/alerts.ts'
import type { MaintenanceTask } from '../maintain/maintenance.ts'

export interface AlertingDependencies {
  readonly clock: Clock
  readonly storeHandle: StoreHandle
  readonly publisher: Publisher
  readonly emit: AnyListener
  readonly stats: StatsDependencies
  /** The option `keep.bytes`, if it is set. */
  readonly keepBytes: number | undefined
}

const DAY: Millis = 24 * 3_600_000

export class Alerting {
  readonly alerts: Alerts
  readonly #deps: AlertingDependencies
  readonly #rules: AlertRule[] = []

  constructor(deps: AlertingDependencies) {
    this.#deps = deps
    this.alerts = new Alerts(deps.storeHandle.store, this.#rules)
  }

  declare(name: string, options: AlertOptions): void {
    const rule = createAlertRule(name, options)
    if (this.#rules.some((one) => one.name === name)) {
      throw new SluiceError('CONFIG_INVALID', `there are two alerts named ${JSON.stringify(name)}; rename one.`)
    }
    this.#rules.push(rule)
  }

  maintenanceTasks(store: Store, process: string): readonly MaintenanceTask[] {
    const { publisher, emit } = this.#deps
    const deps: AlertTaskDependencies = {
      store,
      process,
      rules: this.#rules,
      readStats: () => this.#readStats(store),
      publish: (event) => publisher.publish([event]),
      emit,
    }
    return [createAlertTask(deps) ?? [], createStaleAlertTask(deps)].flat()
  }

  async #readStats(store: Store): Promise<AlertStats> {
    const { clock, storeHandle, keepBytes } = this.#deps
    const [stats, collected] = await Promise.all([store.stats(), collectStats(this.#deps.stats, DAY)])
    const { now } = stats
    const active = stats.flows.filter(({ paused }) => paused === undefined)
    const longestDue = (flows: StatsReply['flows']): Millis => Math.max(0, ...flows.map(({ due = now }) => now - due))
    const { p95, failureRate } = toAlertWindow(collected, DAY)
    return {
      now,
      p95,
      failureRate,
      over: (window: Duration) => toAlertWindow(collected, parseAlertWindow(window, 'over')),
      deadLetters: await countAll(store, { kind: 'dead', filter: { from: now - DAY } }),
      depth: active.reduce((total, { flow }) => total + (collected.depths.flows.get(flow)?.lanes.ready ?? 0), 0),
      oldest: longestDue(active),
      oldestPaused: longestDue(stats.flows.filter(({ paused }) => paused !== undefined)),
      storeBytes: stats.bytes,
      diskUsed: await storeHandle.diskUsed(),
      memoryUsed: stats.memoryUsed,
      keepBytes,
      limits: stats.limits.map(({ name, pausedUntil, last }) => {
        const pausedFor = Math.max(0, pausedUntil - now)
        return { name, pausedFor, waitsFor: Math.max(pausedFor, last - now) }
      }),
      clockOffset: clock.now() - storeHandle.storeClock.now(),
      deadRows: stats.vacuum && sum(Object.values(stats.vacuum.deadRows)),
      snapshot: stats.vacuum?.oldestSnapshot,
    }
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function toAlertWindow(collected: CollectedStats, window: Millis): AlertWindowStats {
  const { p95Ms: p95, failureRate, done, dropped, dead, failing } = computeWindowStats(collected, window)
  return { p95, failureRate, done, ended: done + dropped + dead + failing }
}
