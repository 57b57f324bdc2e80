// `rankUser` is the handler: it makes a few calls to a simulated API, which fails from time to time as a real one does.
import { retry, type Clock, type Ending, type Limit, type Run } from 'sluice'
import type { Chance } from '../kit/chance.ts'
import { NEWS, POISON } from './flow.ts'
import type { Tell } from './life.ts'
import { sleep } from './sleep.ts'

export interface ApiParts {
  readonly api: Limit
  readonly clock: Clock
  readonly luck: Chance
  readonly tell: Tell
}

const FAILING_CALLS = 0.04

/** Loads a user's tasks and writes back what changed: 2 to 5 calls, one after the other. */
export async function rankUser(run: Run, parts: ApiParts): Promise<Ending | undefined> {
  const { api, clock, luck, tell } = parts
  const of = luck.between(2, 5)
  for (let call = 1; call <= of; call++) {
    const answer = await api.run(() => {
      tell({ kind: 'called', at: clock.now(), user: run.key, handed: clock.monotonic(), call, of })
      return answerTo(run, parts)
    })
    run.count('calls')
    // A refusal of the API is expected, so the handler returns it instead of throwing an error.
    if (answer !== '200 ok') return retry({ after: 0, reason: answer })
  }
  run.publish({ type: NEWS, subject: run.key, data: { user: run.key, edits: run.events.length } })
  return undefined
}

async function answerTo({ key, signal }: Run, { clock, luck }: ApiParts): Promise<string> {
  await sleep(clock, luck.between(60, 180), signal)
  signal.throwIfAborted()
  if (key === POISON) return '422 not rankable'
  return luck.hits(FAILING_CALLS) ? '503 unavailable' : '200 ok'
}
