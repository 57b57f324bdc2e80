// What a run does: a few calls to an API that is simulated and now and then fails, as the real one does.
import type { Clock, Lease, Millis, Store } from '../index.ts'
import type { Chance } from './chance.ts'
import { POISON } from './flow.ts'
import { slot } from './limited-calls.ts'
import { sleep } from './sleep.ts'

export interface ApiParts {
  readonly store: Store
  readonly clock: Clock
  readonly luck: Chance
}

export interface Attempted {
  readonly calls: number
  /** Why it failed; undefined when all calls were answered well. */
  readonly error: string | undefined
  /** It gave up because it was told to. */
  readonly aborted: boolean
}

type Called = (handed: Millis, call: number, of: number) => void

const FAILING_CALLS = 0.04

/** Loads a user's tasks and writes back what changed: 2 to 5 calls, one after the other. */
export async function rankUser(parts: ApiParts, run: Lease, signal: AbortSignal, called: Called): Promise<Attempted> {
  const { clock, luck } = parts
  const of = luck.between(2, 5)
  for (let call = 1; call <= of; call++) {
    // The token is new with every attempt, so that the ticket is too.
    const handed = await slot(parts, `${run.run}/${run.token}/${call}`, signal)
    if (handed === undefined) return { calls: call - 1, error: undefined, aborted: true }
    called(handed, call, of)
    const answered = await sleep(clock, luck.between(60, 180), signal)
    if (!answered) return { calls: call, error: undefined, aborted: true }
    if (run.key === POISON) return { calls: call, error: '422 not rankable', aborted: false }
    if (luck.hits(FAILING_CALLS)) return { calls: call, error: '503 unavailable', aborted: false }
  }
  return { calls: of, error: undefined, aborted: false }
}
