// What the demo shows, in names and numbers that its app, its table and its checks share.
import type { Duration, Millis } from 'sluice'

export const FLOW = 'rank-user'
export const TASKS = 'tasks'

/** One of them can never be ranked: all its runs end as dead letters. */
export const POISON = 'poison'
export const USERS: readonly string[] = ['ada', 'ben', 'cleo', 'dan', 'eve', 'finn', 'gita', POISON]

export const API = { name: 'tasks-api', rate: 3, per: '1s' } as const

export const RETRY: readonly Duration[] = ['250ms', '1s', '2s']
export const TRIES: number = RETRY.length + 1

/** Shorter than a long run, so that leases really are renewed. */
export const LEASE: Millis = 3_000
