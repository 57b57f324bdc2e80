// What was delivered to an endpoint, and what is under way: its runs and its lanes, in the words of subscribers.
import type { Millis } from '../clock.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { RunRecord, Store } from '../store/contract/index.ts'
import { isOurs, type KeptAttempt } from './history.ts'

export interface DeliveryRecord {
  /** Of the run. */
  readonly id: string
  /** The name of the delivery. */
  readonly delivery: string
  /** The id of the endpoint. */
  readonly subscriber: string
  readonly status: 'PENDING' | 'DELIVERING' | 'SUCCESS' | 'FAILED'
  /** How many events; of what was partly accepted, those that were. */
  readonly events: number
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly createdAt: Millis
  readonly deliveredAt?: Millis
  readonly nextRetryAt?: Millis
  /** Empty: there was none. */
  readonly lastError: string
  /**
   * Of the last 50 to the endpoint all there is to know; of those before, when and how they failed, of the last 20 failures of the run.
   * And that it could not be posted by a fault of ours, which is no attempt.
   */
  readonly attempts: readonly DeliveryAttempt[]
}

export interface DeliveryAttempt {
  readonly at: Millis
  readonly ms: Millis
  /** Of its answer. */
  readonly status?: number
  /** The first 1,000 characters. */
  readonly answer?: string
  /** Empty: it was delivered. */
  readonly error: string
}

export interface AskedDeliveries {
  /** Of the endpoint. */
  readonly id: string
  /** By name: how often each tries. */
  readonly deliveries: ReadonlyMap<string, { readonly tries: number }>
  /** To the endpoint, as far as they are kept. */
  readonly attempts: readonly KeptAttempt[]
  readonly n: number
}

/** What its run says by itself. */
type OfRun = Omit<DeliveryRecord, 'subscriber' | 'maxAttempts'>

const GOOD: ReadonlySet<RunRecord['kind']> = new Set(['done', 'partial'])

/** What is under way first, then the newest. */
export async function deliveriesTo(
  { id, deliveries, attempts, n }: AskedDeliveries,
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
      return { underWay: item === undefined ? [] : underWay(item), ended: items.map(ended) }
    }),
  )
  const past = found.flatMap((one) => one.ended).toSorted((one, other) => other.createdAt - one.createdAt)
  const all = [...found.flatMap((one) => one.underWay), ...past].slice(0, n)
  return all.map((record) => {
    const made = inFull(record, byRun.get(record.id) ?? [])
    return {
      ...record,
      subscriber: id,
      maxAttempts: deliveries.get(record.delivery)?.tries ?? record.attemptCount,
      lastError: isUnderWay(record) ? (made.at(-1)?.error ?? '') : record.lastError,
      attempts: made,
    }
  })
}

function isUnderWay({ status }: OfRun): boolean {
  return status === 'PENDING' || status === 'DELIVERING'
}

/** A run notes its own failures; what is kept of the same attempts, by their numbers, says more. */
function inFull(record: OfRun, kept: readonly KeptAttempt[]): readonly DeliveryAttempt[] {
  const { attempts, attemptCount, status } = record
  const failures = status === 'SUCCESS' || status === 'DELIVERING' ? attemptCount - 1 : attemptCount
  const isKept = new Set(kept.filter((one) => !isOurs(one)).map(({ attempt }) => attempt))
  const others = attempts.filter((_, n) => !isKept.has(failures - attempts.length + 1 + n))
  const all = kept.map(({ at, ms, status: answered, answer, error }): DeliveryAttempt => {
    return answered === undefined ? { at, ms, error } : { at, ms, status: answered, answer, error }
  })
  return [...others, ...all].toSorted((one, other) => one.at - other.at)
}

function underWay({ flow, run, hold }: Lane): readonly OfRun[] {
  if (run === undefined) return []
  const { id, state, started, tries, events, attempts, until } = run
  const common = { id, delivery: flow, events, createdAt: started, lastError: attempts.at(-1)?.error ?? '', attempts }
  return state === 'running'
    ? [{ ...common, status: 'DELIVERING', attemptCount: tries + 1 }]
    : [{ ...common, status: 'PENDING', attemptCount: tries, ...(hold === undefined && { nextRetryAt: until }) }]
}

function ended({ id, flow, kind, reason, started, ended: at, tries, events, attempts }: RunRecord): OfRun {
  const isGood = GOOD.has(kind)
  return {
    id,
    delivery: flow,
    status: isGood ? 'SUCCESS' : 'FAILED',
    events: events.length,
    attemptCount: isGood ? tries + 1 : tries,
    createdAt: started,
    ...(isGood && { deliveredAt: at }),
    lastError: isGood ? (attempts.at(-1)?.error ?? '') : reason,
    attempts,
  }
}
