// The alerts of an app: what is raised just now, and the conditions that most apps want.
import { NEVER, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { CLEAR, type AlertFigures, type AlertRecord, type AlertRule, type AlertState } from '../model/alert.ts'
import { millis, type Duration } from '../model/duration.ts'
import { holderText } from '../model/hygiene.ts'
import { onlyKnown } from '../model/options.ts'
import type { Store } from '../store/contract/index.ts'
import { ALERT_DOC, recordIn } from '../upkeep/alerts.ts'

export interface AlertOptions {
  /** Whether it is so; a text says what is, to whoever is told. */
  readonly when: (figures: AlertFigures) => boolean | string
  /** How long it must be so before it is raised, and be over before it is called off; at once unless said. */
  readonly for?: Duration
}

export interface Alert {
  readonly name: string
  readonly state: AlertState['kind']
  readonly since: Millis | undefined
  readonly text: string
  /** What its condition threw when it was last asked; how it stands is then of the time before. */
  readonly broken: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['when', 'for', 'notify'])
const NAME = /^[\w][\w.:-]{0,99}$/u

export function alertRule(name: string, options: AlertOptions): AlertRule {
  const refuse = (what: string): never => {
    throw new SluiceError('CONFIG_INVALID', `alert(${JSON.stringify(name)}): ${what}`)
  }
  if (typeof name !== 'string' || !NAME.test(name)) refuse('a name has 1 to 100 letters, digits and . : _ -.')
  if (typeof options !== 'object' || options === null)
    refuse('the options are missing; { when: alerts.depth() } will do.')
  onlyKnown(options, OPTIONS, `alert(${JSON.stringify(name)}): `)
  if (typeof options.when !== 'function') refuse('when is missing; it is a function of the figures.')
  const least = millis(options.for ?? 0, `alert(${JSON.stringify(name)}).for`)
  if (least >= NEVER) refuse('for is endless; it would never be raised.')
  return { name, when: options.when, for: least }
}

export class Alerts {
  readonly #store: () => Promise<Store>
  readonly #rules: readonly AlertRule[]

  constructor(store: () => Promise<Store>, rules: readonly AlertRule[]) {
    this.#store = store
    this.#rules = rules
  }

  /** All that the app declares, as they stand. */
  async list(): Promise<readonly Alert[]> {
    const store = await this.#store()
    const ids = this.#rules.map(({ name }) => name)
    if (ids.length === 0) return []
    const { docs } = await store.readDocs({ kind: ALERT_DOC, ids, after: '', n: ids.length })
    const known = new Map(docs.map((doc) => [doc.id, recordIn(doc)]))
    return ids.map((name) => shown(name, known.get(name) ?? CLEAR))
  }
}

function shown(name: string, record: AlertRecord): Alert {
  const { kind: state, broken } = record
  if (record.kind === 'clear') return { name, state, since: undefined, text: '', broken }
  return { name, state, since: record.since, text: 'text' in record ? record.text : '', broken }
}

type When = AlertOptions['when']
type Bound<T> = (options?: { readonly above?: T }) => When
/** Of the last `window`, an hour unless said, if there were `atLeast` so many events in it, 20 unless said. */
type BoundOver<T> = (options?: { readonly above?: T; readonly window?: Duration; readonly atLeast?: number }) => When

/** Conditions by name; each has a bound that can be said otherwise. */
export const alerts: {
  readonly deadLetters: Bound<number>
  readonly latency: BoundOver<Duration>
  readonly failureRate: BoundOver<number>
  readonly depth: Bound<number>
  readonly oldest: Bound<Duration>
  readonly storeBytes: Bound<number>
  readonly diskFull: Bound<number>
  readonly limitStarving: Bound<Duration>
  readonly clockOffset: Bound<Duration>
  readonly oldSnapshot: Bound<Duration>
} = {
  deadLetters: ({ above = 10 } = {}) => {
    return ({ deadLetters }) => deadLetters > above && `${deadLetters} dead letters within a day.`
  },
  latency: ({ above = '5m', window = '1h', atLeast = 20 } = {}) => {
    const most = millis(above, 'alerts.latency.above')
    const last = windowOf(window, 'alerts.latency.window')
    return ({ over }) => {
      const { p95 = 0, done } = over(last)
      return done >= atLeast && p95 > most && `Of 100 events, 5 take longer than ${seconds(p95)} from arrival to done.`
    }
  },
  failureRate: ({ above = 0.1, window = '1h', atLeast = 20 } = {}) => {
    const last = windowOf(window, 'alerts.failureRate.window')
    return ({ over }) => {
      const { failureRate = 0, ended } = over(last)
      return ended >= atLeast && failureRate > above && `${(failureRate * 100).toFixed(1)} % of all events failed.`
    }
  },
  depth: ({ above = 100 } = {}) => {
    return ({ depth }) => depth > above && `${depth} lanes wait for their turn.`
  },
  oldest: ({ above = '5m' } = {}) => {
    const most = millis(above, 'alerts.oldest.above')
    return ({ oldest }) => oldest > most && `The first in line has been due for ${seconds(oldest)}.`
  },
  storeBytes: ({ above } = {}) => {
    // What is done goes when there is more than keep.bytes: a little above it is nothing to hear of.
    return ({ storeBytes, keepBytes = Infinity }) =>
      storeBytes > (above ?? 1.1 * keepBytes) && `The store has ${storeBytes} bytes.`
  },
  diskFull: ({ above = 0.9 } = {}) => {
    return ({ diskUsed = 0 }) => diskUsed > above && `The disk of the store is ${(diskUsed * 100).toFixed(1)} % full.`
  },
  limitStarving: ({ above = '5m' } = {}) => {
    const most = millis(above, 'alerts.limitStarving.above')
    return ({ limits }) => {
      const starving = limits.find(({ waitsFor }) => waitsFor > most)
      if (starving === undefined) return false
      const { name, pausedFor, waitsFor } = starving
      if (pausedFor > most) return `The limit ${name} is paused for ${seconds(pausedFor)} more.`
      return `Calls under the limit ${name} wait for ${seconds(waitsFor)}.`
    }
  },
  clockOffset: ({ above = '5s' } = {}) => {
    const most = millis(above, 'alerts.clockOffset.above')
    return ({ clockOffset }) =>
      Math.abs(clockOffset) > most && `The clock here is ${clockOffset} ms from that of the store.`
  },
  oldSnapshot: ({ above = '30s' } = {}) => {
    const most = millis(above, 'alerts.oldSnapshot.above')
    return ({ snapshot }) => snapshot !== undefined && snapshot.age > most && holderText(snapshot)
  },
}

const SHORTEST: Millis = 60_000
const LONGEST: Millis = 24 * 3_600_000

/** What figures for alerts can be asked over. */
export function windowOf(window: Duration, name: string): Millis {
  const ms = millis(window, name)
  if (ms >= SHORTEST && ms <= LONGEST) return ms
  throw new SluiceError('CONFIG_INVALID', `${name} is ${JSON.stringify(window)}; it is from 1m to 24h.`)
}

function seconds(ms: Millis): string {
  return `${Math.round(ms / 1_000)} s`
}
