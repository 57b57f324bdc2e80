// What the demo promises, each as a sentence that the figures bear out or do not.
import { API } from './flow.ts'
import { many } from './life.ts'

export interface Facts {
  /** By the ledger. */
  readonly received: number
  readonly handled: number
  /** Events that ended more often than they came. */
  readonly strays: number
  readonly claims: number
  readonly overlaps: number
  readonly mostAtOnce: number
  readonly inversions: number
  readonly calls: number
  readonly mostCalls: number
  /** By the store: what waited when the demo began, what waits now, what died meanwhile. */
  readonly waitedBefore: number
  readonly waiting: number
  readonly dead: number
}

export interface Check {
  readonly name: string
  readonly held: boolean
  readonly says: string
}

export function checksOf(facts: Facts): readonly Check[] {
  const { received, handled, waiting, dead, waitedBefore, strays, claims, calls } = facts
  const before = waitedBefore === 0 ? '' : ` + ${waitedBefore} from before`
  const twice = strays === 0 ? '' : `; ${strays} ended twice`
  return [
    {
      name: 'no event lost',
      held: received + waitedBefore === handled + waiting + dead && strays === 0,
      says: `${received} received${before} = ${handled} handled + ${waiting} waiting + ${dead} dead${twice}`,
    },
    {
      name: 'one run per user at once',
      held: facts.overlaps === 0,
      says: `${many(facts.overlaps, 'overlap')} in ${many(claims, 'turn')}, ${facts.mostAtOnce} at most in all`,
    },
    {
      name: `${API.rate} calls in any second`,
      held: facts.mostCalls <= API.rate,
      says: `${facts.mostCalls} at most, of ${many(calls, 'call')}`,
    },
    {
      name: 'first ready first served',
      held: facts.inversions === 0,
      says: `${many(facts.inversions, 'inversion')} in ${many(claims, 'turn')}`,
    },
  ]
}
