// Finds the events that are in a lane now, through its placements: the cost does not grow with the number of stored events.
import type { Lane } from '../../model/lane.ts'
import { MAX_PLACED } from '../contract/records.ts'
import type { SqlDialect, SqlSearch } from './record-search.ts'
import { DEAD_LETTER_COLUMNS, toDeadLetterRow } from './rows.ts'

type PlacedDialect = Pick<SqlDialect, 'cells' | 'findPlacements'>

const NOT_IN_RUN = { events: 0, upto: -1 }

/** `findEventsInLane` returns the numbers of the first events that wait in the lane, or that its run has. */
export function* findEventsInLane(
  lane: Lane,
  placed: 'waiting' | 'run',
  dialect: PlacedDialect,
): SqlSearch<readonly number[]> {
  const { run } = lane
  if (placed === 'run') {
    if (run === undefined) return []
    if (run.isDeadLetter) return yield* findEventsOfDeadLetter(run.id, dialect)
    const taken = yield* dialect.findPlacements(lane, run.rank, Math.min(run.events, MAX_PLACED))
    return taken.filter(({ pos }) => pos <= run.upto).map(({ event }) => event)
  }
  const waiting: number[] = []
  for (const rank of [0, 1] as const) {
    const inRun = run === undefined || run.isDeadLetter || run.rank !== rank ? NOT_IN_RUN : run
    const placements = yield* dialect.findPlacements(lane, rank, inRun.events + MAX_PLACED)
    waiting.push(...placements.filter(({ pos }) => pos > inRun.upto).map(({ event }) => event))
  }
  return waiting
}

function* findEventsOfDeadLetter(id: string, { cells }: PlacedDialect): SqlSearch<readonly number[]> {
  const [row] = yield { sql: `select ${DEAD_LETTER_COLUMNS} from letters where id = ?`, values: [id] }
  const events = row === undefined ? [] : toDeadLetterRow(cells, row).placements
  return events.slice(0, MAX_PLACED).map(({ event }) => event)
}
