// `play` plays the scenarios of an example one after the other, tells what happens as it happens, and says of each check whether it held.
import { systemClock } from 'sluice'
import type { Example, Scenario } from './example.ts'
import { Stage, type Check } from './stage.ts'

export interface PlayOptions {
  readonly store: string
  readonly write: (line: string) => void
  /** Plays only the scenarios whose title contains this text. */
  readonly only?: string
}

const INDENT = ' '.repeat(10)

/** Returns whether all checks held. */
export async function play<World>(example: Example<World>, { store, write, only = '' }: PlayOptions): Promise<boolean> {
  const began = systemClock.monotonic()
  const seconds = (): string => ((systemClock.monotonic() - began) / 1_000).toFixed(1).padStart(6)
  const tell = (who: string, what: string): void => write(`${seconds()} s  ${who.padEnd(9)} ${what}`)
  const judge = ({ says, held }: Check): void => write(`${INDENT}${held ? 'ok  ' : 'FAILED'} ${says}`)
  const chosen = Object.entries(example.scenarios).filter(([title]) => title.includes(only))
  const last: [string, Scenario<World>][] = example.overall === undefined ? [] : [['Over all of it', example.overall]]
  const stage = await Stage.open(example, { store, tell, judge })
  try {
    for (const [at, [title, scenario]] of chosen.entries()) {
      write(`\n${at + 1}. ${title}`)
      await stage.play(scenario)
    }
    for (const [title, scenario] of last) {
      write(`\n${title}`)
      await stage.play(scenario)
    }
  } finally {
    await stage.close()
  }
  const failed = stage.checks.filter(({ held }) => !held).length
  const verdict = stage.checks.length === 0 ? 'Nothing was checked' : failed === 0 ? 'All held' : `${failed} FAILED`
  write(`\n${verdict} after${seconds()} s.`)
  return failed === 0 && stage.checks.length > 0
}
