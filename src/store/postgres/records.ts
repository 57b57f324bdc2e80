// Search and figures: by bounded steps through the primary key, backwards unless asked otherwise.
import { NEVER, type Millis } from '../../clock.ts'
import type {
  CountCall,
  EventRecord,
  Filter,
  FindCall,
  LetterRecord,
  MarkRecord,
  RecordKind,
  Records,
  RunRecord,
} from '../contract/index.ts'
import type { LetterRow, MarkRow, Page, RecordQueries, RunRow, TableStats } from '../rules/tables.ts'
import { runNumber } from '../rules/work.ts'
import { receiptOf } from './event-rows.ts'
import { LANE_COLUMNS, laneOf } from './lane-rows.ts'
import { Questions, type Db, type Part, type Statement } from './part.ts'
import { LETTER_COLUMNS, letterOf } from './letters.ts'
import { MARK_COLUMNS, markOf } from './marks.ts'
import { SOON } from './ready-lines.ts'
import { RUN_COLUMNS, runOf } from './runs.ts'
import { auditOf } from './docs.ts'
import { statsOf } from './stats.ts'
import { bytes, number, numbers, text, texts, written, type Row } from './values.ts'

/** A page looks at no more rows than this, whatever it is looking for. */
const ROWS_PER_PAGE = 20_000

/** Where a kind of record is kept and what it can be searched by. */
interface Kept<K extends RecordKind> {
  readonly table: string
  readonly columns: string
  /** Grows with age: what pages and cursors go by. */
  readonly order: string
  readonly where: Readonly<Partial<Record<keyof Filter, (n: string) => string>>>
  read(row: Row, ids: IdsOf): Records[K]
  /** The events it names. */
  named?(row: Row): readonly number[]
  /** How the record with an id is found: a condition on $1. */
  readonly byId: string
  idOf(id: string): string | number | undefined
}

type IdsOf = (seqs: readonly number[]) => readonly string[]

interface Found {
  readonly found: unknown
}

const ofALane = {
  flow: (n: string) => `flow = ${n}`,
  lane: (n: string) => `lane = ${n}`,
  tenant: (n: string) => `tenant = ${n}`,
}
const between = (column: string): Kept<RecordKind>['where'] => ({
  from: (n) => `${column} >= ${n}`,
  to: (n) => `${column} < ${n}`,
})

const EVENT_COLUMNS = `id, source, type, time, tenant, subject, attributes, arrived, lanes, size, purged_hash,
  (select count(*) from receipts where receipts.event = events.seq)`
const AUDIT_COLUMNS = 'id, at, who, what, chain'
const numeric = (id: string): number | undefined => (/^\d{1,15}$/.test(id) ? Number(id) : undefined)

export class PostgresRecords implements RecordQueries, Part {
  readonly #kinds: { readonly [K in RecordKind]: Kept<K> }
  readonly #found = new Questions<[call: FindCall<RecordKind>], Found>()
  readonly #counted = new Questions<[call: CountCall], { readonly count: number; readonly next: string | undefined }>()
  readonly #got = new Questions<[kind: RecordKind, id: string], Found>()
  readonly #stats = new Questions<[now: Millis], TableStats>()

  constructor(name: string) {
    this.#kinds = {
      events: {
        table: 'events',
        columns: EVENT_COLUMNS,
        order: 'seq',
        where: {
          source: (n) => `source = ${n}`,
          withoutSource: (n) => `not starts_with(source, ${n})`,
          type: (n) => `type = ${n}`,
          tenant: (n) => `tenant = ${n}`,
          lane: (n) => `${n} = any(lanes)`,
          ...between('arrived'),
        },
        read: eventRecord,
        byId: 'id = $1',
        idOf: written,
      },
      lanes: {
        table: 'lanes',
        columns: LANE_COLUMNS.join(', '),
        order: 'row',
        where: { flow: ofALane.flow, tenant: ofALane.tenant, lane: (n) => `id = ${n}` },
        read: (row) => laneOf(row),
        byId: 'id = $1',
        idOf: written,
      },
      runs: {
        table: 'runs',
        columns: RUN_COLUMNS,
        order: 'n',
        where: { ...ofALane, ...between('ended') },
        read: (row, ids) => runRecord(runOf(row, name), ids),
        named: (row) => numbers(row[12]),
        byId: 'n = $1',
        idOf: (id) => {
          const n = id.startsWith(`${name}-`) ? runNumber(id) : Number.NaN
          return Number.isSafeInteger(n) ? n : undefined
        },
      },
      dead: {
        table: 'letters',
        columns: LETTER_COLUMNS,
        order: 'ord',
        where: { ...ofALane, ...between('at') },
        read: (row, ids) => letterRecord(letterOf(row), ids),
        named: (row) => letterOf(row).places.map((place) => place.event),
        byId: 'id = $1',
        idOf: written,
      },
      marks: {
        table: 'marks',
        columns: MARK_COLUMNS,
        order: 'id',
        where: { flow: ofALane.flow, ...between('since') },
        read: (row, ids) => markRecord(markOf(row), ids),
        named: (row) => [number(row[1])],
        byId: 'id = $1',
        idOf: numeric,
      },
      audit: {
        table: 'audit',
        columns: AUDIT_COLUMNS,
        order: 'id',
        where: between('at'),
        read: auditOf,
        byId: 'id = $1',
        idOf: numeric,
      },
    }
  }

  find<K extends RecordKind>(call: FindCall<K>): Page<K> {
    return (this.#found.ask(call)?.found ?? { items: [], next: undefined }) as Page<K>
  }

  count(call: CountCall): { readonly count: number; readonly next: string | undefined } {
    return this.#counted.ask(call) ?? { count: 0, next: undefined }
  }

  get<K extends RecordKind>(kind: K, id: string): Records[K] | undefined {
    return this.#got.ask(kind, id)?.found as Records[K] | undefined
  }

  stats(now: Millis): TableStats {
    return (
      (now === SOON ? undefined : this.#stats.ask(now)) ?? { flows: [], letters: 0, marks: [], limits: [], bytes: 0 }
    )
  }

  again(): void {
    for (const questions of this.#asked) questions.again()
  }

  get #asked(): readonly Pick<Questions<[], unknown>, 'again' | 'isLacking'>[] {
    return [this.#found, this.#counted, this.#got, this.#stats]
  }

  get isLacking(): boolean {
    return this.#asked.some((questions) => questions.isLacking)
  }

  async load(db: Db): Promise<void> {
    await Promise.all([
      this.#found.load(async (call) => ({ found: await this.#page(db, call) })),
      this.#counted.load((call) => this.#countOf(db, call)),
      this.#got.load(async (kind, id) => ({ found: await this.#one(db, kind, id) })),
      this.#stats.load((now) => statsOf(db, now)),
    ])
  }

  writes(): readonly Statement[] {
    return []
  }

  async #page<K extends RecordKind>(
    db: Db,
    { kind, filter, cursor, n, oldestFirst = false }: FindCall<K>,
  ): Promise<Page<K>> {
    const kept: Kept<K> = this.#kinds[kind]
    const asked = askedOf(kept, filter)
    if (asked === undefined) return { items: [], next: undefined }
    const stretch = await this.#stretch(db, kept, cursor, oldestFirst)
    const rows = await db.rows(
      `select ${kept.order}, ${kept.columns} from ${kept.table} where ${stretch.where} ${asked.where}
       order by ${kept.order} ${oldestFirst ? 'asc' : 'desc'} limit ${n + 1}`,
      [...stretch.bounds, ...asked.values],
    )
    const shown = rows.slice(0, n)
    const stopped = rows.length > n ? number(shown.at(-1)?.[0] ?? 0) : stretch.far
    return {
      items: await this.#read(
        db,
        kept,
        shown.map((row) => row.slice(1)),
      ),
      next: stopped?.toString(),
    }
  }

  async #read<K extends RecordKind>(db: Db, kept: Kept<K>, rows: readonly Row[]): Promise<readonly Records[K][]> {
    const named = kept.named === undefined ? [] : rows.flatMap((row) => kept.named?.(row) ?? [])
    const ids = named.length === 0 ? [] : await db.rows('select seq, id from events where seq = any($1)', [named])
    const known = new Map(ids.map(([seq, id]) => [number(seq), text(id)]))
    return rows.map((row) => kept.read(row, (seqs) => seqs.flatMap((seq) => known.get(seq) ?? [])))
  }

  async #countOf(
    db: Db,
    { kind, filter, cursor, atMost }: CountCall,
  ): Promise<{ count: number; next: string | undefined }> {
    const kept: Kept<RecordKind> = this.#kinds[kind]
    const asked = askedOf(kept, filter)
    if (asked === undefined) return { count: 0, next: undefined }
    const stretch = await this.#stretch(db, kept, cursor, false)
    const [row] = await db.rows(
      `select count(*), min(place) from (select ${kept.order} as place from ${kept.table}
       where ${stretch.where} ${asked.where} order by ${kept.order} desc limit ${atMost}) found`,
      [...stretch.bounds, ...asked.values],
    )
    const count = number(row?.[0])
    // Just as many as were asked for: whether there is another one behind is for the next count to say.
    return { count, next: (count < atMost ? stretch.far : number(row?.[1]))?.toString() }
  }

  async #one<K extends RecordKind>(db: Db, kind: K, id: string): Promise<Records[K] | undefined> {
    const kept: Kept<K> = this.#kinds[kind]
    const place = kept.idOf(id)
    if (place === undefined) return undefined
    const rows = await db.rows(`select ${kept.columns} from ${kept.table} where ${kept.byId}`, [place])
    const [record] = await this.#read(db, kept, rows)
    if (kind !== 'events' || record === undefined) return record
    const [payload] = await db.rows('select request, body, seq from events where id = $1', [place])
    const receipts = await db.rows('select at, kind, id, body_hash from receipts where event = $1 order by n', [
      number(payload?.[2]),
    ])
    return { ...record, body: bytes(payload?.[1]), request: bytes(payload?.[0]), receipts: receipts.map(receiptOf) }
  }

  /** The rows behind the cursor that one call may look at. */
  async #stretch(
    db: Db,
    { table, order }: Pick<Kept<RecordKind>, 'table' | 'order'>,
    cursor: string,
    up: boolean,
  ): Promise<{ readonly where: string; readonly bounds: readonly number[]; readonly far: number | undefined }> {
    const [behind, upTo, way] = up ? ['>', '<=', 'asc'] : ['<', '>=', 'desc']
    const from = cursor === '' ? (up ? -1 : NEVER) : Number(cursor)
    const query = `select ${order} from ${table} where ${order} ${behind} $1 order by ${order} ${way} limit 1 offset ${ROWS_PER_PAGE - 1}`
    const last = (await db.rows(query, [from]))[0]?.[0]
    if (last === undefined)
      return { where: `${order} ${behind} $1 and $2::bigint >= 0`, bounds: [from, 0], far: undefined }
    return { where: `${order} ${behind} $1 and ${order} ${upTo} $2`, bounds: [from, number(last)], far: number(last) }
  }
}

/** Undefined: this kind of record has nothing of the sort. */
function askedOf(
  kept: Pick<Kept<RecordKind>, 'where'>,
  filter: Filter,
): { readonly where: string; readonly values: readonly (string | number)[] } | undefined {
  const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined)
  const clauses = given.map(([name], at) => kept.where[name as keyof Filter]?.(`$${at + 3}`))
  if (clauses.includes(undefined)) return undefined
  return {
    where: clauses.map((clause) => `and ${clause}`).join(' '),
    values: given.map(([, wanted]) => (typeof wanted === 'string' ? written(wanted) : (wanted as number))),
  }
}

function eventRecord(row: Row): EventRecord {
  return {
    id: text(row[0]),
    source: text(row[1]),
    type: text(row[2]),
    time: number(row[3]),
    tenant: text(row[4]),
    subject: text(row[5]),
    attributes: text(row[6]),
    arrived: number(row[7]),
    lanes: texts(row[8]),
    size: number(row[9]),
    purged: row[10] !== '',
    duplicates: number(row[11]),
  }
}

function runRecord(row: RunRow, ids: IdsOf): RunRecord {
  return { ...row, events: ids(row.events) }
}

function letterRecord(row: LetterRow, ids: IdsOf): LetterRecord {
  const { order: _order, group: _group, places, ...letter } = row
  return { ...letter, events: ids(places.map((place) => place.event)) }
}

function markRecord(row: MarkRow, ids: IdsOf): MarkRecord {
  const { id, flow, reason, error, since, tries } = row
  return { id, flow, reason, error, since, tries, event: ids([row.event])[0] ?? '' }
}
