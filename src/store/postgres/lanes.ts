// Lanes in a transaction: locked by their ids in one order; those that are claimed are never waited for.
import { NEVER, type Millis } from '../../clock.ts'
import { emptyLane, isEmpty, type Lane, type Line } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import { keptUntil, leaseEnd, readRest, restOf } from '../rules/lane-rest.ts'
import type { LaneTable, ReadyQuery } from '../rules/tables.ts'
import { insertInto, sendRows, updateOf, type Columns, type WrittenRow } from './columns.ts'
import { GroupTurns } from './group-turns.ts'
import type { LineFloors } from './line-floors.ts'
import { deleteBy, Keyed, Questions, type Db, type Part } from './part.ts'
import { byTurn, ReadyLines, SOON } from './ready-lines.ts'
import { bytes, hex, moment, momentOrNull, number, text, written, type Row } from './values.ts'

export const LANE_COLUMNS = [
  'row',
  'id',
  'flow',
  'key',
  'tenant',
  'grp',
  'tail',
  'waiting',
  'bytes',
  'win',
  'cap',
  'due',
  'ticket',
  'line',
  'rest',
] as const
const COLUMNS = LANE_COLUMNS.join(', ')
/** What a transition may change. */
const CHANGED: Columns = {
  id: 'text',
  row: 'bigint',
  tail: 'bigint',
  waiting: 'int',
  bytes: 'bigint',
  win: 'bigint',
  cap: 'bigint',
  due: 'bigint',
  ticket: 'bigint',
  line: 'smallint',
  rest: 'text',
  lease: 'bigint',
  keep_until: 'bigint',
}
const MADE: Columns = { ...CHANGED, flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
/** One that went and came back may have another name: a key and its group are as its newest event says. */
const NAMED: Columns = { id: 'text', flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
const SET = updateOf('lanes', CHANGED)
const RENAME = updateOf('lanes', NAMED)
/** Somebody else may have made the lane meanwhile: then this fails, and the transaction begins anew. */
const ADD = insertInto('lanes', MADE)

const BY_ID = `select ${COLUMNS} from lanes where id = any($1) order by id`
const LOCKED = `${BY_ID} for update`
const NOWAIT = `${LOCKED} nowait`
const READY = `select ${COLUMNS} from lanes where flow = $1 and line = $2 and due <= $3 and due >= $6 and id <> all($5)
  order by due, ticket limit $4 for update skip locked`
const SERVER_NOW = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
/** By the server's clock, before it was asked what time it is. Asked once: the index is then read no further than that. */
const READY_BY_NOW = READY.replace('due <= $3', `due <= (select ${SERVER_NOW}) and $3::bigint < 0`)
const HEAD = `select id, due from lanes where flow = $1 and line = $2 and due >= $3 and id <> all($4) order by due, ticket limit 1`
const STALE = `select ${COLUMNS} from lanes where keep_until <= $1 limit $2 for update skip locked`
const CROWDED = `select tenant, count(*) from lanes where flow = $1 and tenant <> '' and waiting > 0 and lease is null
  group by tenant having count(*) > $2`
const OLDEST = `select ${COLUMNS} from lanes where flow = $1 and tenant = $2 and waiting > 0 and lease is null
  order by row limit $3 for update skip locked`

type Head = Pick<Lane, 'id' | 'due'>

export class PostgresLanes implements LaneTable, Part {
  readonly #lanes = new Keyed<Lane>()
  readonly #ready = new ReadyLines()
  readonly #heads = new Questions<[flow: string, line: Line, times: number], Head | 'none'>()
  readonly #stale = new Questions<[now: Millis, n: number], readonly LaneId[]>()
  readonly #beyond = new Questions<[flow: string, most: number], readonly LaneId[]>()
  readonly #turns: GroupTurns
  #isLocking = false

  /** All that were named so far. */
  named: readonly LaneId[] = []
  #first: readonly LaneId[]
  readonly #floors: LineFloors

  /** `first`: locked with the first that are named. */
  constructor(first: readonly LaneId[], floors: LineFloors) {
    this.#first = first
    this.#floors = floors
    this.#turns = new GroupTurns({
      all: () => this.#lanes.values(),
      stored: () => this.#lanes.storedKeys,
      load: (rows) => this.#load(rows),
    })
  }

  /** Rows whose places are in the table. */
  isStored(lane: Lane): boolean {
    return this.#lanes.stored(lane.id)?.row === lane.row
  }

  get(id: LaneId): Lane | undefined {
    return this.#lanes.get(id)
  }

  put(lane: Lane): void {
    this.#lanes.put(lane.id, lane)
  }

  begun(_before: Lane, lane: Lane): void {
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.#lanes.remove(lane.id)
  }

  ready(query: ReadyQuery): readonly Lane[] {
    const { flow, line, now, n } = query
    const known = [...this.#lanes.values()].filter(
      (lane) => lane.flow === flow && lane.line === line && lane.due <= now,
    )
    const first = this.#ready.upTo(query, known.toSorted(byTurn)).slice(0, n)
    if (first.length < n) this.#ready.ask(query)
    return first
  }

  inTurn(query: Parameters<LaneTable['inTurn']>[0]): readonly Lane[] {
    return this.#turns.inTurn(query)
  }

  tookTurn(lane: Lane, turn: number, now: Millis): void {
    this.#turns.tookTurn(lane, turn, now)
  }

  forgetTurns(before: Millis, now: Millis, n: number): number {
    return this.#turns.forget(before, now, n)
  }

  head(flow: string, lines: readonly Line[]): Millis | undefined {
    const own = [...this.#lanes.values()].filter((lane) => lane.flow === flow && lines.includes(lane.line))
    const known = own.reduce((least, lane) => Math.min(least, lane.due), NEVER)
    const due = Math.min(known, ...lines.map((line) => this.#headOf(flow, line)))
    return due === NEVER ? undefined : due
  }

  /** Of those that nobody here has looked at: the others may stand elsewhere by now. */
  #headOf(flow: string, line: Line): Millis {
    for (let times = 0; ; times++) {
      const head = this.#heads.ask(flow, line, times)
      if (head === undefined || head === 'none') return NEVER
      if (!this.#lanes.knows(head.id)) return head.due
    }
  }

  stale(now: Millis, n: number): readonly Lane[] {
    const ids = now === SOON ? [] : (this.#stale.ask(now, n) ?? [])
    return this.#of(ids).filter((lane) => isEmpty(lane, now))
  }

  beyond(flow: string, most: number, now: Millis): readonly Lane[] {
    const ids = this.#beyond.ask(flow, most) ?? []
    return this.#of(ids).filter((lane) => lane.run === undefined && lane.window > now)
  }

  #of(ids: readonly LaneId[]): readonly Lane[] {
    return ids.flatMap((id) => this.#lanes.get(id) ?? [])
  }

  again(): void {
    this.#lanes.again()
    for (const questions of this.#asked) questions.again()
    this.#turns.again()
  }

  get isLacking(): boolean {
    return this.#lanes.isLacking || this.#asked.some((questions) => questions.isLacking) || this.#turns.isLacking
  }

  get #asked(): readonly Pick<Questions<[], unknown>, 'again' | 'isLacking'>[] {
    return [this.#ready, this.#heads, this.#stale, this.#beyond]
  }

  /** Those that were named. Locked before anything that belongs to them is read. */
  async lock(db: Db): Promise<void> {
    const ids = [...new Set([...this.#lanes.lacking(), ...this.#first])].toSorted()
    this.#first = []
    this.#isLocking = ids.length > 0
    if (ids.length === 0) return
    // Whoever holds lanes and comes back for more is out of the order in which all lock: it waits for nobody.
    const held = this.#lanes.storedKeys
    this.named = [...held, ...ids]
    for (const id of ids) this.#lanes.load(id, undefined)
    this.#load(await db.rows(db.readOnly ? BY_ID : held.length > 0 ? NOWAIT : LOCKED, [ids]))
  }

  happened(now: Millis): void {
    this.#ready.happened(now)
  }

  /** Those that are found by their deadlines. */
  async load(db: Db): Promise<void> {
    await Promise.all([
      this.#ready.load((query) => this.#findReady(db, query)),
      // How many of a group run is known once those are here that this transaction may end.
      this.#isLocking ? undefined : this.#turns.load(db),
      this.#heads.load((flow, line) => this.#findHead(db, flow, line)),
      this.#stale.load(async (now, n) => this.#load(await db.rows(STALE, [now, n]))),
      this.#beyond.load(async (flow, most) => {
        const crowded = await db.rows(CROWDED, [written(flow), most])
        const found = crowded.map(([tenant, count]) => db.rows(OLDEST, [written(flow), tenant, number(count) - most]))
        return (await Promise.all(found)).flatMap((rows) => this.#load(rows))
      }),
    ])
  }

  async #findReady(db: Db, { flow, line, now, n }: ReadyQuery): Promise<readonly Lane[]> {
    const from = this.#floors.from(flow, line)
    const at = this.#lanes.storedKeys
    const rows = await db.rows(now === SOON ? READY_BY_NOW : READY, [written(flow), line, now, n, at, from])
    const found = this.#load(rows).flatMap((id) => this.#lanes.stored(id) ?? [])
    if (found[0] !== undefined) this.#found(flow, line, from, found[0].due)
    return found
  }

  async #findHead(db: Db, flow: string, line: Line): Promise<Head | 'none'> {
    const from = this.#floors.from(flow, line)
    const [row] = await db.rows(HEAD, [written(flow), line, from, this.#lanes.knownKeys])
    const head = row === undefined ? undefined : { id: text(row[0]), due: number(row[1]) }
    this.#found(flow, line, from, head?.due)
    return head ?? 'none'
  }

  /** Those at hand were left out, and may stand before it. */
  #found(flow: string, line: Line, from: Millis, first: Millis | undefined): void {
    let least = first
    for (const lane of this.#lanes.storedRows) {
      if (lane.flow === flow && lane.line === line) least = Math.min(least ?? NEVER, lane.due)
    }
    this.#floors.found(flow, line, from, least)
  }

  #load(rows: readonly Row[]): readonly LaneId[] {
    return rows.map((row) => {
      const lane = laneOf(row)
      this.#lanes.load(lane.id, lane)
      return lane.id
    })
  }

  write(db: Db): Promise<unknown> {
    const { kept, removed } = this.#lanes
    const sorted = kept.toSorted(byId)
    const old = sorted.filter((lane) => this.#lanes.stored(lane.id) !== undefined)
    const made = sorted.filter((lane) => this.#lanes.stored(lane.id) === undefined)
    this.#floors.written(sorted)
    const renamed = old.filter((lane) => !isCalled(lane, this.#lanes.stored(lane.id)))
    return Promise.all([
      deleteBy(db, 'lanes where id', removed),
      sendRows(db, SET, CHANGED, old.map(changesOf)),
      sendRows(db, RENAME, NAMED, renamed.map(nameOf)),
      sendRows(
        db,
        ADD,
        MADE,
        made.map((lane) => ({ ...changesOf(lane), ...nameOf(lane) })),
      ),
      this.#turns.write(db),
    ])
  }
}

function isCalled(lane: Lane, stored: Lane | undefined): boolean {
  return (
    stored?.key === lane.key &&
    stored.flow === lane.flow &&
    stored.tenant === lane.tenant &&
    stored.group === lane.group
  )
}

function byId(one: Lane, other: Lane): number {
  return one.id < other.id ? -1 : 1
}

function nameOf(lane: Lane): WrittenRow {
  return {
    id: lane.id,
    flow: written(lane.flow),
    key: hex(Buffer.from(lane.key)),
    tenant: written(lane.tenant),
    grp: written(lane.group),
  }
}

function changesOf(lane: Lane): WrittenRow {
  return {
    id: lane.id,
    row: lane.row,
    tail: lane.tail,
    waiting: lane.waiting,
    bytes: lane.bytes,
    win: momentOrNull(lane.window),
    cap: momentOrNull(lane.cap),
    due: momentOrNull(lane.due),
    ticket: lane.ticket,
    line: lane.line,
    rest: restOf(lane),
    lease: momentOrNull(leaseEnd(lane)),
    keep_until: momentOrNull(keptUntil(lane)),
  }
}

export function laneOf(row: Row): Lane {
  const name = {
    id: text(row[1]),
    flow: text(row[2]),
    key: Buffer.from(bytes(row[3])).toString(),
    tenant: text(row[4]),
    group: text(row[5]),
  }
  const rest = row[14]
  return Object.assign(
    emptyLane(name),
    {
      row: number(row[0]),
      tail: number(row[6]),
      waiting: number(row[7]),
      bytes: number(row[8]),
      window: moment(row[9]),
      cap: moment(row[10]),
      due: moment(row[11]),
      ticket: number(row[12]),
      line: number(row[13]) as Line,
    },
    typeof rest === 'string' ? readRest(rest) : undefined,
  )
}
