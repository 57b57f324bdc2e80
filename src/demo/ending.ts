// How an attempt ends: as the store is told it, and as it is told to people once the store has taken it.
import type { Lease, Millis, Settle } from '../index.ts'
import { RETRY } from './flow.ts'
import type { Life } from './life.ts'
import type { Attempted } from './rank-user.ts'

export interface Ending {
  readonly settle: Settle
  /** `at`: when the store took it. */
  life(settled: 'ok' | 'lost' | 'purged', at: Millis): Life
}

export interface Spent {
  /** When the attempt began, on the store's clock. */
  readonly began: Millis
  readonly ms: Millis
  readonly chance: number
}

export function ending(run: Lease, attempted: Attempted, spent: Spent): Ending {
  const { calls, error, aborted } = attempted
  const common = { user: run.key, events: run.events, calls, ms: spent.ms }
  if (aborted) return end(run, { kind: 'released' }, (at) => ({ kind: 'released', at, ...common }))
  if (error === undefined) return end(run, { kind: 'done' }, (at) => ({ kind: 'done', at, ...common }))

  const failed = { at: spent.began, ms: spent.ms, error }
  const attempt = run.tries + 1
  const after = RETRY.delay(attempt, spent.chance)
  return after === undefined
    ? end(
        run,
        { kind: 'dead', reason: error, block: false },
        (at) => ({ kind: 'dead', at, ...common, attempt, error }),
        failed,
      )
    : end(run, { kind: 'retry', after }, (at) => ({ kind: 'retry', at, ...common, attempt, error, after }), failed)
}

function end(run: Lease, outcome: Settle['outcome'], taken: (at: Millis) => Life, attempt?: Settle['attempt']): Ending {
  return {
    // What came meanwhile goes to the tail of the line at once.
    settle: { lane: run.lane, token: run.token, outcome, attempt, publish: [], whileRunning: 'requeue', keep: 0 },
    life: (settled, at) => (settled === 'ok' ? taken(at) : { kind: 'lost', at, user: run.key, events: run.events }),
  }
}
