// `PostgresDeadLetters` holds the dead letters of a transaction. The lock of a lane also guards its dead letters.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { DeadLetterRow, DeadLetterTable } from '../core/tables.ts'
import {
  bindJson,
  buildDelete,
  buildUpsert,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Db,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { DEAD_LETTER_COLUMNS, toDeadLetterRow } from '../sql/rows.ts'
import { escapeText, postgresCells, toByteaHex, type Row, type Value } from './values.ts'

const PUT_DEAD_LETTER = buildUpsert('letters', DEAD_LETTER_COLUMNS, 'id')
const SELECT_BY_ID = `select ${DEAD_LETTER_COLUMNS} from letters where id = any($1) order by ord`
const SELECT_BY_LANE = `select ${DEAD_LETTER_COLUMNS} from letters where lane = any($1) order by ord`
const EXPIRABLE = `select ${DEAD_LETTER_COLUMNS} from letters where at <= $1 and state = 'dead' and not blocks order by at limit $2`

export class PostgresDeadLetters extends CachedTable implements DeadLetterTable {
  readonly #rows = new RowCache<DeadLetterRow>(async (db, ids) => toEntries(await db.query(SELECT_BY_ID, [ids])))
  /** The lanes whose dead letters are all loaded. */
  readonly #ofLanes = new QueryCache<[lane: LaneId], true>(async (db, lanes) => {
    this.#rows.addLoaded(toEntries(await db.query(SELECT_BY_LANE, [lanes.flat()])))
    return lanes.map(() => true)
  })
  readonly #expirable = new QueryCache(
    each(async (db, at: Millis, n: number) => this.#rows.addLoaded(toEntries(await db.query(EXPIRABLE, [at, n])))),
  )
  protected readonly caches: readonly TransactionCache[] = [this.#rows, this.#ofLanes, this.#expirable]

  get(id: string): DeadLetterRow | undefined {
    return this.#rows.get(id)
  }

  put(deadLetter: DeadLetterRow): void {
    this.#rows.put(deadLetter.id, deadLetter)
  }

  remove(id: string): void {
    this.#rows.remove(id)
  }

  findByLane(lane: LaneId): readonly DeadLetterRow[] {
    this.#ofLanes.get(lane)
    return [...this.#rows.values()].filter((row) => row.lane === lane)
  }

  findEventSeqs(lane: LaneId): readonly number[] {
    return this.findByLane(lane).flatMap((row) => row.placements.map(({ event }) => event))
  }

  findNextQueued(lane: LaneId): DeadLetterRow | undefined {
    const queued = this.findByLane(lane).filter((row) => row.state === 'queued')
    return queued.toSorted((one, other) => one.order - other.order)[0]
  }

  findExpirable(at: Millis, n: number): readonly DeadLetterRow[] {
    const ids = this.#expirable.get(at, n) ?? []
    return ids
      .flatMap((id) => this.#rows.get(id) ?? [])
      .filter((deadLetter) => deadLetter.state === 'dead' && !deadLetter.blocks)
  }

  /**
   * The lock of its lane guards a dead letter, and the lane is known only after the dead letter was read. So each load reads the
   * dead letters again, behind the lock.
   */
  override load(db: Db): Promise<unknown> {
    if (!db.readOnly) this.#rows.reload()
    return super.load(db)
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#rows
    return [...buildDelete('letters where id', removed), ...bindJson(PUT_DEAD_LETTER, kept.map(toColumns))]
  }
}

function toColumns(deadLetter: DeadLetterRow): Readonly<Record<string, Value>> {
  return {
    id: deadLetter.id,
    ord: deadLetter.order,
    lane: deadLetter.lane,
    flow: escapeText(deadLetter.flow),
    key: toByteaHex(Buffer.from(deadLetter.key)),
    tenant: escapeText(deadLetter.tenant),
    grp: escapeText(deadLetter.group),
    parent: deadLetter.parent,
    state: deadLetter.state,
    reason: escapeText(deadLetter.reason),
    at: deadLetter.at,
    tries: deadLetter.tries,
    lapses: deadLetter.lapses,
    blocks: deadLetter.blocks,
    places: deadLetter.placements.flatMap(({ pos, event, size }) => [pos, event, size]),
    attempts: JSON.stringify(deadLetter.attempts),
    replay: escapeText(deadLetter.replay),
  }
}

function toEntries(rows: readonly Row[]): readonly (readonly [id: string, deadLetter: DeadLetterRow])[] {
  return rows.map((row) => toDeadLetterRow(postgresCells, row)).map((deadLetter) => [deadLetter.id, deadLetter])
}
