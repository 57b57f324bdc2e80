// What was delivered to an endpoint, and what is under way: its runs and its lanes, in the words of subscribers.
import type { Millis } from '../clock.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { RunRecord, Store } from '../store/contract/index.ts'

export interface DeliveryRecord {
  /** Of the run. */
  readonly id: string
  /** The name of the delivery. */
  readonly delivery: string
  readonly status: 'PENDING' | 'DELIVERING' | 'SUCCESS' | 'FAILED'
  /** How many events; of what was partly accepted, those that were. */
  readonly events: number
  readonly attemptCount: number
  readonly createdAt: Millis
  readonly deliveredAt?: Millis
  readonly nextRetryAt?: Millis
  /** Empty: there was none. */
  readonly lastError: string
  readonly attempts: readonly { readonly at: Millis; readonly ms: Millis; readonly error: string }[]
}

const GOOD: ReadonlySet<RunRecord['kind']> = new Set(['done', 'partial'])

/** What is under way first, then the newest. */
export async function deliveriesTo(
  id: string,
  names: readonly string[],
  n: number,
  store: Store,
): Promise<readonly DeliveryRecord[]> {
  const found = await Promise.all(
    names.map(async (name) => {
      const lane = laneId(name, id)
      const [{ item }, { items }] = await Promise.all([
        store.get({ kind: 'lanes', id: lane }),
        store.find({ kind: 'runs', filter: { lane }, cursor: '', n }),
      ])
      return { underWay: item === undefined ? [] : underWay(item), ended: items.map(ended) }
    }),
  )
  const past = found.flatMap((one) => one.ended).toSorted((one, other) => other.createdAt - one.createdAt)
  return [...found.flatMap((one) => one.underWay), ...past].slice(0, n)
}

function underWay({ flow, run }: Lane): readonly DeliveryRecord[] {
  if (run === undefined) return []
  const { id, state, started, tries, events, attempts, until } = run
  const common = { id, delivery: flow, events, createdAt: started, lastError: attempts.at(-1)?.error ?? '', attempts }
  return state === 'running'
    ? [{ ...common, status: 'DELIVERING', attemptCount: tries + 1 }]
    : [{ ...common, status: 'PENDING', attemptCount: tries, nextRetryAt: until }]
}

function ended({ id, flow, kind, reason, started, ended: at, tries, events, attempts }: RunRecord): DeliveryRecord {
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
