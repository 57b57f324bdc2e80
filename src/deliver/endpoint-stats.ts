// `readEndpointStats` returns how the POSTs to one endpoint went, and what waits for it.
import type { Millis } from '../clock.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { Store } from '../store/contract/index.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import { computePercentiles, type Percentiles } from './health/durations.ts'
import { listSteps, STEP, sumSteps, type PostHistory, type StepStats } from './health/history.ts'

export interface EndpointStatsOptions {
  /** 1 to 24, in full half hours with the current one. Default 24. */
  readonly hours?: number
}

/** The counts are of POSTs: a batch that was retried counts once for each attempt. */
interface PostCounts {
  readonly delivered: number
  readonly failed: number
  /** Batches that became dead letters. */
  readonly dead: number
}

export interface EndpointStats extends PostCounts {
  /** When the first of the half hours began. */
  readonly since: Millis
  /** Delivered POSTs per POST, from 0 to 1; missing without POSTs. */
  readonly successRate?: number
  /** From the oldest event of a batch to its delivery; missing without deliveries. */
  readonly latencyMs?: Percentiles
  /** How long the POSTs took. */
  readonly responseMs?: Percentiles
  /** In all lanes of the endpoint: events that wait, replayed events that wait, and events of batches in progress. */
  readonly waiting: { readonly events: number; readonly replayed: number; readonly inProgress: number }
  /** One entry for each half hour with a POST, the oldest first. */
  readonly steps: readonly (PostCounts & { readonly at: Millis })[]
}

const MAX_HOURS = 24
const STEPS_PER_HOUR = 3_600_000 / STEP

export function parseStatsHours(options: EndpointStatsOptions): number {
  assertKnownOptions(options, ['hours'], 'endpoints.stats: ')
  const { hours = MAX_HOURS } = options
  if (Number.isSafeInteger(hours) && hours >= 1 && hours <= MAX_HOURS) return hours
  throw invalidOption(`endpoints.stats: hours must be a whole number from 1 to ${MAX_HOURS}; got ${String(hours)}.`)
}

interface StatsInputs {
  readonly id: string
  readonly history: PostHistory
  readonly deliveries: readonly string[]
  readonly hours: number
}

export async function readEndpointStats(
  store: Store,
  { id, history, deliveries, hours }: StatsInputs,
): Promise<EndpointStats> {
  const found = await Promise.all(deliveries.map((name) => store.get({ kind: 'lanes', id: laneId(name, id) })))
  const now = found[0]?.now ?? (await store.readDocs({ kind: 'endpoint', ids: [id], after: '', n: 1 })).now
  const first = Math.floor(now / STEP) - hours * STEPS_PER_HOUR + 1
  const listed = listSteps(history, first)
  const { delivered, failed, dead, latencies, responses } = sumSteps(listed)
  const [latencyMs, responseMs] = [computePercentiles(latencies), computePercentiles(responses)]
  return {
    since: first * STEP,
    delivered,
    failed,
    dead,
    ...(delivered + failed > 0 && { successRate: delivered / (delivered + failed) }),
    ...(latencyMs !== undefined && { latencyMs }),
    ...(responseMs !== undefined && { responseMs }),
    waiting: countWaiting(found.flatMap(({ item }) => item ?? [])),
    steps: listed.map(toStep),
  }
}

function toStep({ step, delivered, failed, dead }: StepStats): EndpointStats['steps'][number] {
  return { at: step * STEP, delivered, failed, dead }
}

function countWaiting(lanes: readonly Lane[]): EndpointStats['waiting'] {
  const sum = (of: (lane: Lane) => number): number => lanes.reduce((total, lane) => total + of(lane), 0)
  return {
    events: sum(({ waiting }) => waiting),
    replayed: sum(({ replays }) => replays),
    inProgress: sum(({ run }) => run?.events ?? 0),
  }
}
