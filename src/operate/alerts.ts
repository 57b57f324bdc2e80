// The alerts of an app: what is raised just now, and the conditions that most apps want.
import { NEVER, type Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { CLEAR, type AlertFigures, type AlertRule, type AlertState } from '../model/alert.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { Store } from '../store/contract/index.ts'
import { ALERT_DOC, stateIn } from '../upkeep/alerts.ts'

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
    const known = new Map(docs.map((doc) => [doc.id, stateIn(doc)]))
    return ids.map((name) => shown(name, known.get(name) ?? CLEAR))
  }
}

function shown(name: string, state: AlertState): Alert {
  if (state.kind === 'clear') return { name, state: 'clear', since: undefined, text: '' }
  return { name, state: state.kind, since: state.since, text: 'text' in state ? state.text : '' }
}

type When = AlertOptions['when']
type Bound<T> = (options?: { readonly above?: T }) => When

/** Conditions by name; each has a bound that can be said otherwise. */
export const alerts: {
  readonly deadLetters: Bound<number>
  readonly latency: Bound<Duration>
  readonly failureRate: Bound<number>
  readonly depth: Bound<number>
  readonly oldest: Bound<Duration>
  readonly storeBytes: (options: { readonly above: number }) => When
  readonly limitPaused: Bound<Duration>
  readonly clockOffset: Bound<Duration>
} = {
  deadLetters: ({ above = 10 } = {}) => {
    return ({ deadLetters }) => deadLetters > above && `${deadLetters} dead letters within a day.`
  },
  latency: ({ above = '5m' } = {}) => {
    const most = millis(above, 'alerts.latency.above')
    return ({ p95 = 0 }) => p95 > most && `Of 100 events, 5 take longer than ${seconds(p95)} from arrival to done.`
  },
  failureRate: ({ above = 0.1 } = {}) => {
    return ({ failureRate = 0 }) => failureRate > above && `${(failureRate * 100).toFixed(1)} % of all events failed.`
  },
  depth: ({ above = 100 } = {}) => {
    return ({ depth }) => depth > above && `${depth} lanes wait.`
  },
  oldest: ({ above = '5m' } = {}) => {
    const most = millis(above, 'alerts.oldest.above')
    return ({ oldest }) => oldest > most && `The first in line has been due for ${seconds(oldest)}.`
  },
  storeBytes: ({ above }) => {
    return ({ storeBytes }) => storeBytes > above && `The store has ${storeBytes} bytes.`
  },
  limitPaused: ({ above = '5m' } = {}) => {
    const most = millis(above, 'alerts.limitPaused.above')
    return ({ limits }) => {
      const starving = limits.find(({ pausedFor }) => pausedFor > most)
      return starving !== undefined && `The limit ${starving.name} is paused for ${seconds(starving.pausedFor)} more.`
    }
  },
  clockOffset: ({ above = '5s' } = {}) => {
    const most = millis(above, 'alerts.clockOffset.above')
    return ({ clockOffset }) =>
      Math.abs(clockOffset) > most && `The clock here is ${clockOffset} ms from that of the store.`
  },
}

function seconds(ms: Millis): string {
  return `${Math.round(ms / 1_000)} s`
}
