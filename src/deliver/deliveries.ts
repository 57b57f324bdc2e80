// `listDeliveries` shows subscribers what was delivered to an endpoint and what is in progress.
import type { Millis } from '../clock.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { RunRecord, Store } from '../store/contract/index.ts'
import { isOwnFailure, type PostAttempt } from './health/history.ts'

export interface DeliveryRecord {
  /** The id of the run. */
  readonly id: string
  /** The name of the delivery. */
  readonly delivery: string
  /** The id of the endpoint. */
  readonly subscriber: string
  readonly status: 'PENDING' | 'DELIVERING' | 'SUCCESS' | 'FAILED'
  /** The number of events. For a partly accepted batch, the number of accepted events. */
  readonly events: number
  /** The ids of its first and last event. Missing while the first attempt is in progress, and for purged events. */
  readonly firstEvent?: string
  readonly lastEvent?: string
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly createdAt: Millis
  readonly deliveredAt?: Millis
  readonly nextRetryAt?: Millis
  /** Empty if no attempt failed. */
  readonly lastError: string
  /**
   * The details of the last 50 attempts to the endpoint. For older attempts, only the time and the error of the run's
   * last 20 failures. Sluice's own failures are listed too, although they are not attempts.
   */
  readonly attempts: readonly DeliveryAttempt[]
}

export interface DeliveryAttempt {
  readonly at: Millis
  readonly ms: Millis
  /** The HTTP status of the response. */
  readonly status?: number
  /** The first 1,000 characters of the response body. */
  readonly answer?: string
  /** Empty if the batch was delivered. */
  readonly error: string
}

export interface DeliveriesQuery {
  /** The id of the endpoint. */
  readonly id: string
  /** The deliveries by name, with their maximum number of attempts. */
  readonly deliveries: ReadonlyMap<string, { readonly maxAttempts: number }>
  /** The stored attempts to this endpoint. */
  readonly attempts: readonly PostAttempt[]
  readonly n: number
}

/** The fields that come from the run alone. */
type RunDelivery = Omit<DeliveryRecord, 'subscriber' | 'maxAttempts'>

const SUCCESSFUL_KINDS: ReadonlySet<RunRecord['kind']> = new Set(['done', 'partial'])

/** `listDeliveries` returns the runs in progress first, then the ended runs, newest first. */
export async function listDeliveries(
  { id, deliveries, attempts, n }: DeliveriesQuery,
  store: Store,
): Promise<readonly DeliveryRecord[]> {
  const byRun = Map.groupBy(attempts, ({ run }) => run)
  const found = await Promise.all(
    [...deliveries.keys()].map(async (name) => {
      const lane = laneId(name, id)
      const [{ item }, { items }] = await Promise.all([
        store.get({ kind: 'lanes', id: lane }),
        store.find({ kind: 'runs', filter: { lane }, cursor: '', n }),
      ])
      return { underWay: item === undefined ? [] : fromLane(item), ended: items.map(fromRunRecord) }
    }),
  )
  const past = found.flatMap((one) => one.ended).toSorted((one, other) => other.createdAt - one.createdAt)
  const all = [...found.flatMap((one) => one.underWay), ...past].slice(0, n)
  return all.map((record) => {
    const made = withAttemptDetails(record, byRun.get(record.id) ?? [])
    return {
      ...record,
      ...eventRangeOf(record, byRun.get(record.id) ?? []),
      subscriber: id,
      maxAttempts: deliveries.get(record.delivery)?.maxAttempts ?? record.attemptCount,
      lastError: isUnderWay(record) ? (made.at(-1)?.error ?? '') : record.lastError,
      attempts: made,
    }
  })
}

/** A run in progress has no record of its events yet, but the endpoint's history has what was posted last. */
function eventRangeOf(
  { firstEvent, lastEvent }: RunDelivery,
  kept: readonly PostAttempt[],
): Pick<DeliveryRecord, 'firstEvent' | 'lastEvent'> {
  const { first = firstEvent, last = lastEvent } = firstEvent === undefined ? (kept.at(-1) ?? {}) : {}
  return { ...(first !== undefined && { firstEvent: first }), ...(last !== undefined && { lastEvent: last }) }
}

function isUnderWay({ status }: RunDelivery): boolean {
  return status === 'PENDING' || status === 'DELIVERING'
}

/** Merges the failures that the run stores with the endpoint's history, which has more details of the same attempts. */
function withAttemptDetails(record: RunDelivery, kept: readonly PostAttempt[]): readonly DeliveryAttempt[] {
  const { attempts, attemptCount, status } = record
  const failures = status === 'SUCCESS' || status === 'DELIVERING' ? attemptCount - 1 : attemptCount
  const isKept = new Set(kept.filter((one) => !isOwnFailure(one)).map(({ attempt }) => attempt))
  const others = attempts.filter((_, n) => !isKept.has(failures - attempts.length + 1 + n))
  const all = kept.map(({ at, ms, status: answered, answer, error }): DeliveryAttempt => {
    return answered === undefined ? { at, ms, error } : { at, ms, status: answered, answer, error }
  })
  return [...others, ...all].toSorted((one, other) => one.at - other.at)
}

function fromLane({ flow, run, hold }: Lane): readonly RunDelivery[] {
  if (run === undefined) return []
  const { id, state, started, tries, events, attempts, until } = run
  const common = { id, delivery: flow, events, createdAt: started, lastError: attempts.at(-1)?.error ?? '', attempts }
  return state === 'running'
    ? [{ ...common, status: 'DELIVERING', attemptCount: tries + 1 }]
    : [{ ...common, status: 'PENDING', attemptCount: tries, ...(hold === undefined && { nextRetryAt: until }) }]
}

function toEventRange(events: readonly string[]): Pick<DeliveryRecord, 'firstEvent' | 'lastEvent'> {
  const [first] = events
  const last = events.at(-1)
  return first === undefined || last === undefined ? {} : { firstEvent: first, lastEvent: last }
}

function fromRunRecord({
  id,
  flow,
  kind,
  reason,
  started,
  ended: at,
  tries,
  events,
  attempts,
}: RunRecord): RunDelivery {
  const isGood = SUCCESSFUL_KINDS.has(kind)
  return {
    id,
    delivery: flow,
    status: isGood ? 'SUCCESS' : 'FAILED',
    events: events.length,
    ...toEventRange(events),
    attemptCount: isGood ? tries + 1 : tries,
    createdAt: started,
    ...(isGood && { deliveredAt: at }),
    lastError: isGood ? (attempts.at(-1)?.error ?? '') : reason,
    attempts,
  }
}
