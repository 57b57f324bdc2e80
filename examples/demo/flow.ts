// The names and numbers that the app, the table and the checks of the demo share.
import type { Duration, Millis } from 'sluice'

export const FLOW = 'rank-user'
export const TASKS = 'tasks'
/** The source for webhooks that a person sends with curl. */
export const BY_HAND = 'curl'
/** The type of the events that the demo delivers to its subscribers. */
export const NEWS = 'tasks.ranked'

/** The tasks of this user can never be ranked, so its runs become dead letters. */
export const POISON = 'poison'
export const USERS: readonly string[] = ['ada', 'ben', 'cleo', 'dan', 'eve', 'finn', 'gita', POISON]

export const API = { name: 'tasks-api', rate: 3, per: '1s' } as const

export const RETRY: readonly Duration[] = ['250ms', '1s', '2s']
export const TRIES: number = RETRY.length + 1

/** A lease is shorter than a long run, so that the demo renews leases. */
export const LEASE: Millis = 3_000
