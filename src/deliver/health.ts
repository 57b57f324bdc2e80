// How an endpoint is, in one word and the figures behind it: of its breaker, its last day and what waits for it. Pure.
import type { Millis } from '../clock.ts'
import type { Breaker } from './breaker.ts'
import { isOurs, ofTheDay, type History, type KeptAttempt } from './history.ts'

export interface EndpointHealth {
  /** Down: nothing gets through. Degraded: it fails now, or we do, or too much was given up within a day. */
  readonly status: 'up' | 'degraded' | 'down'
  /** Empty: it is up. */
  readonly why: string
  readonly breaker: Breaker['kind']
  readonly consecutiveFailures: number
  readonly failingSince?: Millis
  /** From here on of the last 24 hours. POSTs that were answered, well or not, or were in vain. */
  readonly attempts: number
  /** Successful deliveries of all attempts, from 0 to 1; not there if there were none. */
  readonly successRate?: number
  /** From when the oldest event of a batch was made until it was delivered, on average. */
  readonly latencyMs?: number
  /** How long a POST took, on average. */
  readonly responseMs?: number
  /** Batches that were given up: dead letters. */
  readonly failedBatches: number
  /** Batches that should have been on their way for five minutes. */
  readonly stuckBatches: number
}

export interface Fared {
  readonly breaker: Breaker
  readonly history: History
  readonly stuck: number
  readonly now: Millis
}

/** More of them in a day is more than bad luck. */
const FAILED_MOST = 100

export function healthOf({ breaker, history, stuck, now }: Fared): EndpointHealth {
  const { delivered, failed, dead, ms, latency } = ofTheDay(history, now)
  const attempts = delivered + failed
  const { failures, since } = breaker
  return {
    ...statusOf({ breaker, stuck, dead, last: history.attempts.at(-1) }),
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

interface Standing {
  readonly breaker: Breaker
  readonly stuck: number
  readonly dead: number
  readonly last: KeptAttempt | undefined
}

function statusOf({ breaker, stuck, dead, last }: Standing): Pick<EndpointHealth, 'status' | 'why'> {
  if (breaker.kind === 'disabled') {
    return { status: 'down', why: breaker.why === 'gone' ? 'It answered 410 and is disabled.' : FAILED_FOR_DAYS }
  }
  if (breaker.kind !== 'closed') return { status: 'down', why: `It has failed ${breaker.failures} times in a row.` }
  if (stuck > 0) return { status: 'down', why: 'Nothing has taken up what is due for it.' }
  if (last !== undefined && isOurs(last)) return { status: 'degraded', why: last.error }
  if (dead > FAILED_MOST) return { status: 'degraded', why: `${dead} batches were given up within a day.` }
  if (breaker.failures > 0) return { status: 'degraded', why: 'The last attempt failed.' }
  return { status: 'up', why: '' }
}

const FAILED_FOR_DAYS = 'It has failed for days and is disabled.'
