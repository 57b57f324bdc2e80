// What a reader should take away: what was shown, and whether what was promised held.
import type { Check } from './checks.ts'
import { API } from './flow.ts'
import type { Outcome } from './demo.ts'
import { many, seconds } from './life.ts'
import type { Paint } from './style.ts'

export interface Shown {
  readonly outcome: Outcome
  readonly checks: readonly Check[]
  /** The address of the store, and what it says of its own durability. */
  readonly store: string
  readonly durable: string
  readonly seed: number
}

const NAME_WIDTH = 32

export function summaryOf({ outcome, checks, ...shown }: Shown, paint: Paint): readonly string[] {
  const { facts, last } = outcome
  const held = checks.every((check) => check.held)
  return [
    paint('bold', ` What was shown in ${seconds(last.elapsed)}`),
    `   ${many(facts.received, 'edit')} by ${many(last.rows.length, 'user')}, debounced into ${many(last.runs, 'run')}: ${last.eventsPerRun.toFixed(1)} events a run`,
    `   ${many(facts.calls, 'API call')} under ${API.rate} a second; ${many(outcome.retries, 'failed try').replace('trys', 'tries')} put off and tried again`,
    `   ${many(outcome.deadRuns, 'run')} given up as dead letters, without holding up anybody else`,
    `   on ${shown.store} (${shown.durable}), seed ${shown.seed}`,
    '',
    paint('bold', ' Checks'),
    ...checks.map((check) => `   ${verdict(check.held, paint)}  ${check.name.padEnd(NAME_WIDTH)} ${check.says}`),
    '',
    held
      ? paint('green', ' All checks held.')
      : paint('red', ' A check FAILED: this is a bug in Sluice or in its demo.'),
  ]
}

function verdict(held: boolean, paint: Paint): string {
  return held ? paint('green', 'ok  ') : paint('red', 'FAIL')
}
