// `summaryOf` is printed at the end: what was shown, and whether the checks held.
import type { Check } from './checks.ts'
import type { Outcome } from './demo.ts'
import { API } from './flow.ts'
import { many, seconds } from './life.ts'
import type { Paint } from './style.ts'

export interface Shown {
  readonly outcome: Outcome
  readonly checks: readonly Check[]
  /** The address of the store, how durable it is, and whether it is removed now. */
  readonly store: string
  readonly durable: string
  readonly removed: boolean
  readonly seed: number
}

const NAME_WIDTH = 24

export function summaryOf(shown: Shown, paint: Paint): readonly string[] {
  const { checks, outcome } = shown
  const held = checks.every((check) => check.held)
  const { received, waitedBefore } = outcome.facts
  if (received + waitedBefore === 0) return [' No webhook was received, so there is nothing to check.']
  return [
    ...story(shown, paint),
    '',
    paint('bold', ' Checks'),
    ...checks.map((check) => ` ${verdict(check.held, paint)} ${check.name.padEnd(NAME_WIDTH)} ${check.says}`),
    '',
    held ? paint('green', ' All checks held.') : paint('red', ' A check FAILED: a bug in Sluice, or in its demo.'),
  ]
}

function verdict(held: boolean, paint: Paint): string {
  return held ? paint('green', 'ok  ') : paint('red', 'FAIL')
}

function story({ outcome, store, durable, removed, seed }: Shown, paint: Paint): readonly string[] {
  const { facts, last, retries, deadRuns, lost } = outcome
  const perRun = last.eventsPerRun.toFixed(1)
  return [
    paint('bold', ` What was shown in ${seconds(last.elapsed)}`),
    ` ${many(facts.received, 'edit')} by ${last.rows.length} users, debounced into ${many(last.runs, 'run')}: ${perRun} events a run`,
    ` ${many(facts.calls, 'API call')}, at most ${API.rate} a second over all users; ${many(retries, 'failure')} tried again later`,
    deadRuns === 0
      ? ' no dead letter yet: the poison user has four tries'
      : ` ${many(deadRuns, 'dead letter')}, without holding up anybody else`,
    ...(lost === 0 ? [] : [` ${many(lost, 'run')} lost the lease, because the machine stalled, and ran again`]),
    ` on ${store}${removed ? ', removed again' : ', kept: start again on it and it goes on'}; seed ${seed}`,
    paint('dim', ` ${durable}`),
  ]
}
