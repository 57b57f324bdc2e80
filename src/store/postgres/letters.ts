// Dead letters in a transaction. A lane's letters belong to whoever has locked the lane.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Attempt } from '../../model/lane.ts'
import type { LetterRow, LetterTable } from '../rules/tables.ts'
import { deleteBy, Keyed, Questions, upsert, withJson, type Db, type Part, type Statement } from './part.ts'
import { bytes, hex, number, numbers, text, written, type Row, type Value } from './values.ts'

const LETTER = [
  'id',
  'ord',
  'lane',
  'flow',
  'key',
  'tenant',
  'grp',
  'parent',
  'state',
  'reason',
  'at',
  'tries',
  'lapses',
  'blocks',
  'places',
  'attempts',
]
export const LETTER_COLUMNS: string = LETTER.join(', ')
const PUT_LETTER = upsert('letters', LETTER, ['id'])
const LETTERS_BY_ID = `select ${LETTER_COLUMNS} from letters where id = any($1) order by ord`
const LETTERS_OF_LANE = `select ${LETTER_COLUMNS} from letters where lane = any($1) order by ord`
const EXPIRABLE = `select ${LETTER_COLUMNS} from letters where at <= $1 and state = 'dead' and not blocks order by at limit $2`

export class PostgresLetters implements LetterTable, Part {
  readonly #letters = new Keyed<LetterRow>()
  /** All letters of these lanes are known. */
  readonly #lanes = new Set<LaneId>()
  readonly #lacksLanes = new Set<LaneId>()
  readonly #lists = new Questions<[sql: string, values: readonly (string | number)[]], readonly string[]>()

  get(id: string): LetterRow | undefined {
    return this.#letters.get(id)
  }

  put(letter: LetterRow): void {
    this.#letters.put(letter.id, letter)
  }

  remove(id: string): void {
    this.#letters.remove(id)
  }

  ofLane(lane: LaneId): readonly LetterRow[] {
    if (!this.#lanes.has(lane)) this.#lacksLanes.add(lane)
    return [...this.#letters.values()].filter((letter) => letter.lane === lane)
  }

  eventsOf(lane: LaneId): readonly number[] {
    return this.ofLane(lane).flatMap((letter) => letter.places.map((place) => place.event))
  }

  nextQueued(lane: LaneId): LetterRow | undefined {
    const queued = this.ofLane(lane).filter((letter) => letter.state === 'queued')
    return queued.toSorted((one, other) => one.order - other.order)[0]
  }

  expirable(at: Millis, n: number): readonly LetterRow[] {
    const ids = this.#lists.ask(EXPIRABLE, [at, n]) ?? []
    return ids
      .flatMap((id) => this.#letters.get(id) ?? [])
      .filter((letter) => letter.state === 'dead' && !letter.blocks)
  }

  again(): void {
    this.#letters.again()
    this.#lacksLanes.clear()
    this.#lists.again()
  }

  get isLacking(): boolean {
    return this.#letters.isLacking || this.#lacksLanes.size > 0 || this.#lists.isLacking
  }

  async load(db: Db): Promise<void> {
    // A letter is guarded by the lock of its lane, which is known only once the letter was read: it is read again behind it.
    const ids = [...new Set([...this.#letters.lacking(), ...(db.readOnly ? [] : this.#letters.storedKeys)])].toSorted()
    const lanes = [...this.#lacksLanes]
    for (const id of ids) this.#letters.load(id, undefined)
    for (const lane of lanes) this.#lanes.add(lane)
    await Promise.all([
      ids.length > 0 ? db.rows(LETTERS_BY_ID, [ids]).then((rows) => this.#loadRows(rows)) : undefined,
      lanes.length > 0 ? db.rows(LETTERS_OF_LANE, [lanes]).then((rows) => this.#loadRows(rows)) : undefined,
      this.#lists.load(async (sql, values) => this.#loadRows(await db.rows(sql, values))),
    ])
  }

  #loadRows(rows: readonly Row[]): readonly string[] {
    return rows.map((row) => {
      const letter = letterOf(row)
      this.#letters.load(letter.id, letter)
      return letter.id
    })
  }

  writes(): readonly Statement[] {
    const { kept, removed } = this.#letters
    return [...deleteBy('letters where id', removed), ...withJson(PUT_LETTER, kept.map(letterRow))]
  }
}

function letterRow(letter: LetterRow): Readonly<Record<string, Value>> {
  return {
    id: letter.id,
    ord: letter.order,
    lane: letter.lane,
    flow: written(letter.flow),
    key: hex(Buffer.from(letter.key)),
    tenant: written(letter.tenant),
    grp: written(letter.group),
    parent: letter.parent,
    state: letter.state,
    reason: written(letter.reason),
    at: letter.at,
    tries: letter.tries,
    lapses: letter.lapses,
    blocks: letter.blocks,
    places: letter.places.flatMap(({ pos, event, size }) => [pos, event, size]),
    attempts: JSON.stringify(letter.attempts),
  }
}

export function letterOf(row: Row): LetterRow {
  const places = numbers(row[14])
  return {
    id: text(row[0]),
    order: number(row[1]),
    lane: text(row[2]),
    flow: text(row[3]),
    key: Buffer.from(bytes(row[4])).toString(),
    tenant: text(row[5]),
    group: text(row[6]),
    parent: text(row[7]),
    state: text(row[8]) as LetterRow['state'],
    reason: text(row[9]),
    at: number(row[10]),
    tries: number(row[11]),
    lapses: number(row[12]),
    blocks: row[13] === true,
    places: Array.from({ length: places.length / 3 }, (_, at) => ({
      pos: places[at * 3] ?? 0,
      event: places[at * 3 + 1] ?? 0,
      size: places[at * 3 + 2] ?? 0,
    })),
    attempts: JSON.parse(text(row[15])) as readonly Attempt[],
  }
}
