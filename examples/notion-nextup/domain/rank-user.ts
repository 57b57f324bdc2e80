// One run of a user: reads the tasks, computes which ranks and dates are wrong, and writes those. If there are more
// writes than fit into a run, the user goes behind all other ready users with the rest.
import type { Client } from '@notionhq/client'
import { snooze, PermanentError, type Ending, type Run } from 'sluice'
import { today, type Calendar } from './business-days.ts'
import { load, write } from './notion-tasks.ts'
import { plan, type Write } from './plan.ts'
import type { Ranking } from './ranking.ts'

export interface RankParts {
  readonly notion: Client
  readonly dataSource: string
  readonly ranking: Ranking
  readonly calendarOf: (user: string) => Calendar
  readonly now: () => number
  /** Says what it would write, and writes nothing. */
  readonly dryRun: boolean
  /** Under three calls a second this is how long others wait: 30 are about eleven seconds. */
  readonly callsPerTurn: number
}

/** Kept between two runs. The plan is written as it is; an edit that came later causes another run of the user. */
interface Rest {
  readonly writes: readonly Write[]
  /** There were more than are worth keeping: look again when these are written. */
  readonly more: boolean
}

interface Planned extends Rest {
  /** How many writes this turn still has room for. */
  readonly room: number
}

/** Well below what a run may keep. */
const WRITES_KEPT = 1_000
/** As the first of the flow's retries. */
const FALTERED = '250ms'

export async function rankUser(run: Run, parts: RankParts): Promise<Ending | undefined> {
  const kept = run.state as Rest | undefined
  const { writes, more, room } = kept === undefined ? await planned(run, parts) : { ...kept, room: parts.callsPerTurn }
  if (parts.dryRun) return undefined
  const restAfter = (written: number): Rest => ({ writes: writes.slice(written), more })
  for (const [written, one] of writes.slice(0, room).entries()) {
    try {
      run.count((await write(parts.notion, one)) === 'written' ? 'updated' : 'gone')
    } catch (error) {
      // What is written stays written: a turn that got somewhere goes on from there.
      if (written === 0 || error instanceof PermanentError) throw error
      return snooze({ after: FALTERED, state: restAfter(written) })
    }
  }
  if (writes.length > room) return snooze({ state: restAfter(room) })
  return more ? snooze() : undefined
}

async function planned(run: Run, parts: RankParts): Promise<Planned> {
  const { ranking, dryRun } = parts
  const { tasks, calls } = await load(parts.notion, parts.dataSource, run.key)
  const calendar = parts.calendarOf(run.key)
  const writes = plan(tasks, { user: run.key, today: today(parts.now(), calendar), calendar, ranking })
  run.count('loaded', tasks.length)
  run.log.info(writes.length === 0 ? 'no changes' : dryRun ? 'would write' : 'writes', {
    tasks: tasks.length,
    changes: writes.length,
    ...(dryRun ? { wouldWrite: writes.slice(0, 20) } : {}),
  })
  const more = writes.length > WRITES_KEPT
  return { writes: writes.slice(0, WRITES_KEPT), more, room: Math.max(1, parts.callsPerTurn - calls) }
}
