// The flow that the demo shows, in numbers: each user is a lane, and every API call is under one shared limit.
import { backoff, window, type Backoff, type Millis } from '../index.ts'
import type { LimitNumbers } from '../model/limit.ts'
import type { WindowNumbers } from '../model/place.ts'

export const FLOW = 'rank-user'

/** One of them can never be ranked: all its runs end as dead letters. */
export const POISON = 'poison'
export const USERS: readonly string[] = ['ada', 'ben', 'cleo', 'dan', 'eve', 'finn', 'gita', POISON]

/** Short enough that one sees windows close within a minute. */
export const WINDOW: WindowNumbers = window({ quiet: '2s', max: '10s' }, FLOW).numbers(0)

export const RETRY: Backoff = backoff(['250ms', '1s', '2s'], FLOW)

export const API: LimitNumbers & { readonly name: string } = {
  name: 'tasks-api',
  rate: 3,
  per: 1_000,
  burst: 0,
  cost: 1,
}

/** Under a hard cap on calls, a second run at once would only wait beside the first. */
export const CONCURRENCY = 1

/** Shorter than a long run, so that leases really are renewed. */
export const LEASE: Millis = 3_000
