// The alerts of an app: their options and states, and the built-in conditions that most apps need.
import { NEVER, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { CLEAR_ALERT, type AlertStats, type AlertRecord, type AlertRule, type AlertState } from '../model/alert.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { describeSnapshotHolder } from '../model/vacuum-stats.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { Store } from '../store/contract/index.ts'
import { ALERT_DOC, parseAlertRecord } from '../maintain/alerts.ts'

export interface AlertOptions {
  /** Returns whether the alert is active. A returned text describes why and is passed to `notify`. */
  readonly when: (stats: AlertStats) => boolean | string
  /** How long the condition must hold before the alert is raised, and be over before it is cleared. Default: 0. */
  readonly for?: Duration
}

export interface Alert {
  readonly name: string
  readonly state: AlertState['kind']
  readonly since: Millis | undefined
  readonly text: string
  /** The error of the condition's last check. The state is then that of the check before. */
  readonly broken: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['when', 'for', 'notify'])
const NAME = /^[\w][\w.:-]{0,99}$/u

export function createAlertRule(name: string, options: AlertOptions): AlertRule {
  const refuse = (message: string): never => {
    throw new SluiceError('CONFIG_INVALID', `alert(${JSON.stringify(name)}): ${message}`)
  }
  if (typeof name !== 'string' || !NAME.test(name)) refuse('the name must have 1 to 100 letters, digits and . : _ -.')
  if (typeof options !== 'object' || options === null)
    refuse('the options are missing. Pass e.g. { when: alerts.depth() }.')
  assertKnownOptions(options, OPTIONS, `alert(${JSON.stringify(name)}): `)
  if (typeof options.when !== 'function') refuse('when must be a function of the stats.')
  const least = parseDuration(options.for ?? 0, `alert(${JSON.stringify(name)}).for`)
  if (least >= NEVER) refuse('for must be finite. The alert would never be raised.')
  return { name, when: options.when, for: least }
}

export class Alerts {
  readonly #store: () => Promise<Store>
  readonly #rules: readonly AlertRule[]

  constructor(store: () => Promise<Store>, rules: readonly AlertRule[]) {
    this.#store = store
    this.#rules = rules
  }

  /** `list` returns the state of every declared alert. */
  async list(): Promise<readonly Alert[]> {
    const store = await this.#store()
    const ids = this.#rules.map(({ name }) => name)
    if (ids.length === 0) return []
    const { docs } = await store.readDocs({ kind: ALERT_DOC, ids, after: '', n: ids.length })
    const known = new Map(docs.map((doc) => [doc.id, parseAlertRecord(doc)]))
    return ids.map((name) => toAlert(name, known.get(name) ?? CLEAR_ALERT))
  }
}

function toAlert(name: string, record: AlertRecord): Alert {
  const { kind: state, broken } = record
  if (record.kind === 'clear') return { name, state, since: undefined, text: '', broken }
  return { name, state, since: record.since, text: 'text' in record ? record.text : '', broken }
}

type AlertCondition = AlertOptions['when']
type ThresholdCondition<T> = (options?: { readonly above?: T }) => AlertCondition
/** Looks at the events of the last `window` (default 1 h), if there were at least `atLeast` of them (default 20). */
type WindowedThresholdCondition<T> = (options?: {
  readonly above?: T
  readonly window?: Duration
  readonly atLeast?: number
}) => AlertCondition

/** The built-in conditions by name. Each has a threshold that an option can change. */
export const alerts: {
  readonly deadLetters: ThresholdCondition<number>
  readonly latency: WindowedThresholdCondition<Duration>
  readonly failureRate: WindowedThresholdCondition<number>
  readonly depth: ThresholdCondition<number>
  /** With `paused`, lanes of paused flows count as well. */
  readonly oldest: (options?: { readonly above?: Duration; readonly paused?: boolean }) => AlertCondition
  readonly storeBytes: ThresholdCondition<number>
  readonly diskFull: ThresholdCondition<number>
  readonly memoryFull: ThresholdCondition<number>
  readonly limitStarving: ThresholdCondition<Duration>
  readonly clockOffset: ThresholdCondition<Duration>
  readonly oldSnapshot: ThresholdCondition<Duration>
} = {
  deadLetters: ({ above = 10 } = {}) => {
    return ({ deadLetters }) => deadLetters > above && `${deadLetters} dead letters within a day.`
  },
  latency: ({ above = '5m', window = '1h', atLeast = 20 } = {}) => {
    const most = parseDuration(above, 'alerts.latency.above')
    const last = parseAlertWindow(window, 'alerts.latency.window')
    return ({ over }) => {
      const { p95 = 0, done } = over(last)
      return (
        done >= atLeast && p95 > most && `Of 100 events, 5 take longer than ${formatSeconds(p95)} from arrival to done.`
      )
    }
  },
  failureRate: ({ above = 0.1, window = '1h', atLeast = 20 } = {}) => {
    const last = parseAlertWindow(window, 'alerts.failureRate.window')
    return ({ over }) => {
      const { failureRate = 0, ended } = over(last)
      return ended >= atLeast && failureRate > above && `${(failureRate * 100).toFixed(1)} % of all events failed.`
    }
  },
  depth: ({ above = 100 } = {}) => {
    return ({ depth }) => depth > above && `${depth} lanes are ready and wait.`
  },
  oldest: ({ above = '5m', paused = false } = {}) => {
    const most = parseDuration(above, 'alerts.oldest.above')
    return ({ oldest, oldestPaused }) => {
      const longest = paused ? Math.max(oldest, oldestPaused) : oldest
      return longest > most && `The first ready lane has been due for ${formatSeconds(longest)}.`
    }
  },
  storeBytes: ({ above } = {}) => {
    // Retention removes finished work above keep.bytes, so a small excess is normal.
    return ({ storeBytes, keepBytes = Infinity }) =>
      storeBytes > (above ?? 1.1 * keepBytes) && `The store has ${storeBytes} bytes.`
  },
  diskFull: ({ above = 0.9 } = {}) => {
    return ({ diskUsed = 0 }) => diskUsed > above && `The disk of the store is ${(diskUsed * 100).toFixed(1)} % full.`
  },
  memoryFull: ({ above = 0.8 } = {}) => {
    return ({ memoryUsed = 0 }) =>
      memoryUsed > above && `The memory of the Redis server is ${(memoryUsed * 100).toFixed(1)} % full.`
  },
  limitStarving: ({ above = '5m' } = {}) => {
    const most = parseDuration(above, 'alerts.limitStarving.above')
    return ({ limits }) => {
      const starving = limits.find(({ waitsFor }) => waitsFor > most)
      if (starving === undefined) return false
      const { name, pausedFor, waitsFor } = starving
      if (pausedFor > most) return `The limit ${name} stays paused for another ${formatSeconds(pausedFor)}.`
      return `Calls under the limit ${name} wait for ${formatSeconds(waitsFor)}.`
    }
  },
  clockOffset: ({ above = '5s' } = {}) => {
    const most = parseDuration(above, 'alerts.clockOffset.above')
    return ({ clockOffset }) =>
      Math.abs(clockOffset) > most && `The clock of this process differs from that of the store by ${clockOffset} ms.`
  },
  oldSnapshot: ({ above = '30s' } = {}) => {
    const most = parseDuration(above, 'alerts.oldSnapshot.above')
    return ({ snapshot }) => snapshot !== undefined && snapshot.age > most && describeSnapshotHolder(snapshot)
  },
}

const SHORTEST_WINDOW: Millis = 60_000
const LONGEST_WINDOW: Millis = 24 * 3_600_000

/** `parseAlertWindow` checks the window of an alert's stats. */
export function parseAlertWindow(window: Duration, name: string): Millis {
  const ms = parseDuration(window, name)
  if (ms >= SHORTEST_WINDOW && ms <= LONGEST_WINDOW) return ms
  throw new SluiceError('CONFIG_INVALID', `${name} must be from 1m to 24h; got ${JSON.stringify(window)}.`)
}

function formatSeconds(ms: Millis): string {
  return `${Math.round(ms / 1_000)} s`
}
