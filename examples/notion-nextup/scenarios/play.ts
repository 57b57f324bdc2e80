// Plays all scenarios one after the other, tells what happens as it happens, and says of each whether it held.
import { systemClock } from 'sluice'
import { overall, SCENARIOS, type Check, type Scenario } from './scenarios.ts'
import { Stage } from './stage.ts'

/** True: all of them held. */
export async function play(
  store: string,
  write: (line: string) => void,
  scenarios: readonly Scenario[] = SCENARIOS,
): Promise<boolean> {
  const began = systemClock.monotonic()
  const seconds = (): string => ((systemClock.monotonic() - began) / 1_000).toFixed(1).padStart(6)
  const stage = new Stage(store, (who, what) => write(`${seconds()} s  ${who.padEnd(9)} ${what}`))
  let failed = 0
  const judge = (checks: readonly Check[]): void => {
    for (const { says, held } of checks) write(`          ${held ? 'ok  ' : 'FAILED'} ${says}`)
    failed += checks.filter(({ held }) => !held).length
  }
  await stage.open()
  try {
    for (const [at, scenario] of scenarios.entries()) {
      write(`\n${at + 1}. ${scenario.title}`)
      stage.clear()
      judge(await played(scenario, stage))
    }
    write('\nOver all of it')
    judge(overall(stage))
  } finally {
    await stage.close()
  }
  write('\nFigures')
  for (const [name, value] of stage.figures) write(`          ${name}: ${Math.round(value * 10) / 10}`)
  write(`\n${failed === 0 ? 'All held' : `${failed} FAILED`} after${seconds()} s.`)
  return failed === 0
}

/** One that breaks off has failed; the others are played all the same. */
async function played(scenario: Scenario, stage: Stage): Promise<readonly Check[]> {
  try {
    return await scenario.play(stage)
  } catch (error) {
    return [{ says: error instanceof Error ? error.message : String(error), held: false }]
  }
}
