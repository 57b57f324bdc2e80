// How an endpoint is, in one word: what its breaker knows, and what lies there undelivered.
import type { Breaker } from './breaker.ts'

export type Health = 'up' | 'degraded' | 'down'

export interface Undelivered {
  /** Batches that have been in the making for more than five minutes: nobody is at them any more. */
  readonly stuck: number
  /** Batches that are dead letters. */
  readonly dead: number
}

const DEAD_MAX = 100

export function healthOf(breaker: Breaker, { stuck, dead }: Undelivered): Health {
  if (stuck > 0 || breaker.kind !== 'closed') return 'down'
  return dead > DEAD_MAX || breaker.failures > 0 ? 'degraded' : 'up'
}
