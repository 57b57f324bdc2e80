// The plan of a torture test: which events are published, which lanes they must enter, and how their handlers end. Everything
// follows from the seed and the label of an event, so the checker knows it without the engine.
import { laneId, keylessLaneId, type LaneId } from '../../../src/model/identity.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'

export type Topic =
  | 'single'
  | 'both'
  | 'gather'
  | 'shared'
  | 'strict'
  | 'blocking'
  | 'newest'
  | 'oldest'
  | 'leading'
  | 'cancelling'
  | 'fanned'
  | 'hurried'
  | 'paced'
  | 'relay'
  | 'odd'
  | 'wide'
  | 'parcel'

type Weights<T> = readonly (readonly [T, number])[]

/** Picks one of the choices by weight. */
export function oneOf<T>(chance: Chance, weights: Weights<T>): T {
  let left = chance.below(weights.reduce((sum, [, weight]) => sum + weight, 0))
  for (const [one, weight] of weights) if ((left -= weight) < 0) return one
  throw new Error('The weights changed while they were counted.')
}

/** `odd` and `wide` are published by name, `parcel` by runs. */
const PUBLISHED: Weights<Topic> = [
  ['single', 1],
  ['both', 1],
  ['gather', 2],
  ['shared', 4],
  ['strict', 2],
  ['blocking', 2],
  ['newest', 1],
  ['oldest', 1],
  ['leading', 1],
  ['cancelling', 3],
  ['fanned', 2],
  ['hurried', 1],
  ['paced', 1],
  ['relay', 2],
]

/** Topics whose flows have no key: each event is a lane of its own. */
const KEYLESS: readonly Topic[] = ['single', 'paced', 'relay']

const KEYS = 4
const TENANTS = 3
/** The tenant whose data is purged as a whole. */
export const LEAVING = 'leaving'
const LEAVES = 0.15
/** More lanes than an event may enter at once: it is placed after its publisher got the reply. */
const WIDE_LANES = 101
const HAS_TENANT: readonly Topic[] = ['shared', 'hurried']

/** The maximum runs of one tenant of `shared`, of all of `strict`, and the open windows of one tenant of `hurried`. */
export const BOUNDS = { shared: 2, strict: 3, hurried: 2 } as const

export interface Data {
  readonly label: string
  readonly topic: Topic
  readonly keys: readonly string[]
}

export interface Input {
  readonly type: string
  readonly id: string
  readonly tenant?: string
  readonly data: Data
}

/** One event, defined by its label alone. */
export function inputOf(label: string, topic: Topic = topicOf(label)): Input {
  const chance = new Chance(seedOf(`input ${label}`))
  const key = `k${chance.below(KEYS)}`
  const tenant = chance.happens(LEAVES) ? LEAVING : `t${chance.below(TENANTS)}`
  const keys = keysOf(topic, HAS_TENANT.includes(topic) ? `${tenant}/${key}` : key, chance)
  const event = { type: topic, id: label, data: { label, topic, keys } }
  return HAS_TENANT.includes(topic) ? { ...event, tenant } : event
}

function keysOf(topic: Topic, key: string, chance: Chance): readonly string[] {
  if (topic === 'wide') return Array.from({ length: WIDE_LANES }, (_, at) => `w${at}`)
  if (topic !== 'fanned') return [key]
  const all = Array.from({ length: KEYS }, (_, at) => `k${at}`)
  const first = chance.below(KEYS)
  return Array.from({ length: 2 + chance.below(2) }, (_, at) => all[(first + at) % KEYS] ?? '')
}

function topicOf(label: string): Topic {
  return oneOf(new Chance(seedOf(`topic ${label}`)), PUBLISHED)
}

/** The lanes that an event must enter. */
export function lanesOf({ id, data: { topic, keys } }: Input): readonly LaneId[] {
  if (topic === 'both') return [keylessLaneId('single', id), ...keys.map((key) => laneId('gather', key))]
  return KEYLESS.includes(topic) ? [keylessLaneId(topic, id)] : keys.map((key) => laneId(topic, key))
}

const PLAIN = ['gather', 'strict', 'blocking', 'newest', 'oldest', 'leading', 'cancelling', 'fanned', 'parcel']

/** The flows and keys that the operator may name. */
export const STEERED: readonly (readonly [flow: string, key: string])[] = [
  ...PLAIN.flatMap((flow) => Array.from({ length: KEYS }, (_, at) => [flow, `k${at}`] as const)),
  ...HAS_TENANT.flatMap((flow) =>
    Array.from({ length: TENANTS * KEYS }, (_, at) => [flow, `t${at % TENANTS}/k${at % KEYS}`] as const),
  ),
]

/** What a handler does. */
export type Act =
  | 'done'
  | 'nothing'
  | 'snooze'
  | 'retry'
  | 'drop'
  | 'partial'
  | 'throw'
  | 'permanent'
  | 'nonsense'
  | 'timeout'

const ACTS: Weights<Act> = [
  ['done', 30],
  ['nothing', 22],
  ['snooze', 7],
  ['retry', 7],
  ['drop', 5],
  ['partial', 10],
  ['throw', 10],
  ['permanent', 4],
  ['nonsense', 3],
  ['timeout', 2],
]

export interface Step {
  readonly ms: number
  readonly act: Act
  /** How many events the handler publishes. */
  readonly publishes: number
}

const LONGEST_MS = 40

/** What the handler does with a run whose first event is this one; `snooze` ends after two steps. */
export function stepOf(seed: number, label: string, attempt: number, step: number): Step {
  const chance = new Chance(seedOf(`${seed} step ${label} ${attempt} ${step}`))
  const ms = chance.below(LONGEST_MS)
  const act = oneOf(chance, ACTS)
  return { ms, act: act === 'snooze' && step > 1 ? 'done' : act, publishes: chance.below(3) }
}
