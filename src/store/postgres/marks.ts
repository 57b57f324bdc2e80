// Marks in a transaction: what is stored and not yet in all its lanes.
import type { Millis } from '../../clock.ts'
import type { MarkRow, MarkTable } from '../rules/tables.ts'
import { BYTES_AT_ONCE } from './event-rows.ts'
import { deleteBy, Keyed, Questions, upsert, withJson, type Db, type Part, type Statement } from './part.ts'
import { SOON } from './ready-lines.ts'
import { number, text, written, type Row } from './values.ts'

const MARK = ['id', 'event', 'flow', 'reason', 'error', 'since', 'due', 'tries', 'token']
export const MARK_COLUMNS: string = MARK.join(', ')
const MARKS_BY = `select ${MARK_COLUMNS} from marks where`
const PUT_MARK = upsert('marks', MARK, ['id'])
/** What a transaction published is placed in its order: nothing of it while something of it is being placed. Asked once, not for each. */
const BEING_PLACED = `select error, flow from marks where reason = 'outbox' and error like 'transaction %' and due > $1`
const FIRST_DUE = `select ${MARK_COLUMNS} from marks m where due <= $1 and reason = any($2) and (flow = '' or flow = any($3))
  and (reason <> 'outbox' or (error, flow) not in (${BEING_PLACED}))
  order by due, id limit $4 for update skip locked`
const DUE = `select ${MARK_COLUMNS} from
  (select m.*, sum(size) over (order by due, id) - size as before from (${FIRST_DUE}) m left join lateral
    (select size + octet_length(request) as size from events where seq = m.event) e on true) m
  where before is null or before < ${BYTES_AT_ONCE} order by due, id`

export class PostgresMarks implements MarkTable, Part {
  readonly #marks = new Keyed<MarkRow>()
  readonly #events = new Set<number>()
  readonly #lacksEvents = new Set<number>()
  readonly #due = new Questions<
    [now: Millis, reasons: readonly string[], flows: readonly string[], n: number],
    readonly number[]
  >()

  get(id: number): MarkRow | undefined {
    return this.#marks.get(String(id))
  }

  put(mark: MarkRow): void {
    this.#marks.put(String(mark.id), mark)
  }

  remove(id: number): void {
    this.#marks.remove(String(id))
  }

  due(...query: Parameters<MarkTable['due']>): readonly MarkRow[] {
    // At a moment that is not known yet, nothing is.
    return (query[0] === SOON ? [] : (this.#due.ask(...query) ?? [])).flatMap((id) => this.get(id) ?? [])
  }

  ofEvent(event: number): readonly MarkRow[] {
    if (!this.#events.has(event)) this.#lacksEvents.add(event)
    return [...this.#marks.values()].filter((mark) => mark.event === event)
  }

  again(): void {
    this.#marks.again()
    this.#lacksEvents.clear()
    this.#due.again()
  }

  get isLacking(): boolean {
    return this.#marks.isLacking || this.#lacksEvents.size > 0 || this.#due.isLacking
  }

  async load(db: Db): Promise<void> {
    const ids = this.#marks.lacking()
    const events = [...this.#lacksEvents]
    for (const id of ids) this.#marks.load(id, undefined)
    for (const event of events) this.#events.add(event)
    await Promise.all([
      ids.length > 0
        ? db
            .rows(`${MARKS_BY} id = any($1) order by id for update`, [ids.map(Number)])
            .then((rows) => this.#loadRows(rows))
        : undefined,
      events.length > 0
        ? db.rows(`${MARKS_BY} event = any($1) order by id for update`, [events]).then((rows) => this.#loadRows(rows))
        : undefined,
      this.#due.load(async (now, reasons, flows, n) =>
        this.#loadRows(await db.rows(DUE, [now, reasons, flows.map(written), n])),
      ),
    ])
  }

  #loadRows(rows: readonly Row[]): readonly number[] {
    return rows.map((row) => {
      const mark = markOf(row)
      this.#marks.load(String(mark.id), mark)
      return mark.id
    })
  }

  writes(): readonly Statement[] {
    const { kept, removed } = this.#marks
    const rows = kept.map((mark) => ({ ...mark, flow: written(mark.flow), error: written(mark.error) }))
    return [...deleteBy('marks where id', removed.map(Number)), ...withJson(PUT_MARK, rows)]
  }
}

export function markOf(row: Row): MarkRow {
  return {
    id: number(row[0]),
    event: number(row[1]),
    flow: text(row[2]),
    reason: text(row[3]) as MarkRow['reason'],
    error: text(row[4]),
    since: number(row[5]),
    due: number(row[6]),
    tries: number(row[7]),
    token: number(row[8]),
  }
}
