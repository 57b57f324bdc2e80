// `PostgresDeadLetters` holds the dead letters of a transaction. The lock of a lane also guards its dead letters.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { DeadLetterRow, DeadLetterTable } from '../core/tables.ts'
import {
  buildDelete,
  RowCache,
  QueryCache,
  buildUpsert,
  bindJson,
  type Db,
  type TransactionTable,
  type Statement,
} from './row-cache.ts'
import { DEAD_LETTER_COLUMNS, toDeadLetterRow } from '../sql/rows.ts'
import { escapeText, postgresCells, toByteaHex, type Row, type Value } from './values.ts'

const PUT_DEAD_LETTER = buildUpsert('letters', DEAD_LETTER_COLUMNS, 'id')
const SELECT_BY_ID = `select ${DEAD_LETTER_COLUMNS} from letters where id = any($1) order by ord`
const SELECT_BY_LANE = `select ${DEAD_LETTER_COLUMNS} from letters where lane = any($1) order by ord`
const EXPIRABLE = `select ${DEAD_LETTER_COLUMNS} from letters where at <= $1 and state = 'dead' and not blocks order by at limit $2`

export class PostgresDeadLetters implements DeadLetterTable, TransactionTable {
  readonly #rows = new RowCache<DeadLetterRow>()
  /** The lanes whose dead letters are all loaded. */
  readonly #lanes = new Set<LaneId>()
  readonly #missingLanes = new Set<LaneId>()
  readonly #queries = new QueryCache<[sql: string, values: readonly (string | number)[]], readonly string[]>()

  get(id: string): DeadLetterRow | undefined {
    return this.#rows.get(id)
  }

  put(letter: DeadLetterRow): void {
    this.#rows.put(letter.id, letter)
  }

  remove(id: string): void {
    this.#rows.remove(id)
  }

  findByLane(lane: LaneId): readonly DeadLetterRow[] {
    if (!this.#lanes.has(lane)) this.#missingLanes.add(lane)
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
    const ids = this.#queries.get(EXPIRABLE, [at, n]) ?? []
    return ids.flatMap((id) => this.#rows.get(id) ?? []).filter((letter) => letter.state === 'dead' && !letter.blocks)
  }

  resetPass(): void {
    this.#rows.resetPass()
    this.#missingLanes.clear()
    this.#queries.resetPass()
  }

  get hasMisses(): boolean {
    return this.#rows.hasMisses || this.#missingLanes.size > 0 || this.#queries.hasMisses
  }

  async load(db: Db): Promise<void> {
    // The lock of its lane guards a dead letter, and the lane is known only after the dead letter was read. So each load reads
    // the dead letters again, behind the lock.
    const ids = [...new Set([...this.#rows.takeMisses(), ...(db.readOnly ? [] : this.#rows.storedKeys)])].toSorted()
    const lanes = [...this.#missingLanes]
    for (const id of ids) this.#rows.load(id, undefined)
    for (const lane of lanes) this.#lanes.add(lane)
    await Promise.all([
      ids.length > 0 ? db.query(SELECT_BY_ID, [ids]).then((rows) => this.#loadRows(rows)) : undefined,
      lanes.length > 0 ? db.query(SELECT_BY_LANE, [lanes]).then((rows) => this.#loadRows(rows)) : undefined,
      this.#queries.load(async (sql, values) => this.#loadRows(await db.query(sql, values))),
    ])
  }

  #loadRows(rows: readonly Row[]): readonly string[] {
    return rows.map((row) => {
      const letter = toDeadLetterRow(postgresCells, row)
      this.#rows.load(letter.id, letter)
      return letter.id
    })
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#rows
    return [...buildDelete('letters where id', removed), ...bindJson(PUT_DEAD_LETTER, kept.map(toColumns))]
  }
}

function toColumns(letter: DeadLetterRow): Readonly<Record<string, Value>> {
  return {
    id: letter.id,
    ord: letter.order,
    lane: letter.lane,
    flow: escapeText(letter.flow),
    key: toByteaHex(Buffer.from(letter.key)),
    tenant: escapeText(letter.tenant),
    grp: escapeText(letter.group),
    parent: letter.parent,
    state: letter.state,
    reason: escapeText(letter.reason),
    at: letter.at,
    tries: letter.tries,
    lapses: letter.lapses,
    blocks: letter.blocks,
    places: letter.placements.flatMap(({ pos, event, size }) => [pos, event, size]),
    attempts: JSON.stringify(letter.attempts),
  }
}
