// `computeHealth` computes the health of an endpoint from its breaker, its last day and its waiting batches. Pure.
import type { Millis } from '../../clock.ts'
import type { Breaker } from './breaker.ts'
import { isOwnFailure, sumLastDay, type PostHistory, type PostAttempt } from './history.ts'

export interface EndpointHealth {
  /** `down`: no batch gets through. `degraded`: something fails now, or too many batches were given up within a day. */
  readonly status: 'up' | 'degraded' | 'down'
  /** Empty if the status is `up`. */
  readonly why: string
  readonly breaker: Breaker['kind']
  readonly consecutiveFailures: number
  readonly failingSince?: Millis
  /** All POSTs of the last 24 hours, successful or not. The fields below cover the same period. */
  readonly attempts: number
  /** Successful deliveries per attempt, from 0 to 1; missing without attempts. */
  readonly successRate?: number
  /** The average time from the oldest event of a batch to its delivery. */
  readonly latencyMs?: number
  /** The average duration of a POST. */
  readonly responseMs?: number
  /** Batches that became dead letters. */
  readonly failedBatches: number
  /** Batches that have been due for five minutes. */
  readonly stuckBatches: number
}

export interface HealthInputs {
  readonly breaker: Breaker
  readonly history: PostHistory
  readonly stuck: number
  readonly now: Millis
}

/** More dead letters than this in a day make an endpoint degraded. */
const MAX_FAILED_BATCHES = 100

export function computeHealth({ breaker, history, stuck, now }: HealthInputs): EndpointHealth {
  const { delivered, failed, dead, ms, latency } = sumLastDay(history, now)
  const attempts = delivered + failed
  const { failures, since } = breaker
  return {
    ...computeStatus({ breaker, stuck, dead, last: history.attempts.at(-1) }),
    breaker: breaker.kind,
    consecutiveFailures: failures,
    ...(failures > 0 && { failingSince: since }),
    attempts,
    ...(attempts > 0 && { successRate: delivered / attempts, responseMs: Math.round(ms / attempts) }),
    ...(delivered > 0 && { latencyMs: Math.round(latency / delivered) }),
    failedBatches: dead,
    stuckBatches: stuck,
  }
}

interface StatusInputs {
  readonly breaker: Breaker
  readonly stuck: number
  readonly dead: number
  readonly last: PostAttempt | undefined
}

function computeStatus({ breaker, stuck, dead, last }: StatusInputs): Pick<EndpointHealth, 'status' | 'why'> {
  if (breaker.kind === 'disabled') {
    return {
      status: 'down',
      why: breaker.why === 'gone' ? 'The endpoint returned 410 and is disabled.' : FAILED_FOR_DAYS,
    }
  }
  if (breaker.kind !== 'closed') return { status: 'down', why: `It has failed ${breaker.failures} times in a row.` }
  if (stuck > 0) return { status: 'down', why: 'No process claims its batches, which are due.' }
  if (last !== undefined && isOwnFailure(last)) return { status: 'degraded', why: last.error }
  if (dead > MAX_FAILED_BATCHES) return { status: 'degraded', why: `${dead} batches were given up within a day.` }
  if (breaker.failures > 0) return { status: 'degraded', why: 'The last attempt failed.' }
  return { status: 'up', why: '' }
}

const FAILED_FOR_DAYS = 'It has failed for days and is disabled.'
