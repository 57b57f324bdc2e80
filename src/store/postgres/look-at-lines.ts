// Looks at the lines of flows: which lanes are ready, and when the next will be. All lines of a turn with one statement each, and
// all at the one moment that the transaction has: looks at two moments would miss a lane that falls due between them.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Line } from '../../model/lane.ts'
import type { PlacedEvent } from '../rules/tables.ts'
import { PLACED_COLUMNS, placedOf } from './event-rows.ts'
import { STANDING_COLUMNS, STANDING_WIDTH } from './lane-rows.ts'
import type { Db } from './part.ts'
import { number, text, written, type Row } from './values.ts'

export interface OfLine {
  readonly flow: string
  readonly line: Line
}

export interface AskedLine extends OfLine {
  /** Nobody stands before it. */
  readonly from: Millis
  /** So many of it. */
  readonly most: number
}

interface Look {
  readonly without: readonly LaneId[]
  /** Undefined: the moment that the transaction has set. */
  readonly at: Millis | undefined
}

/** Events that come along with their lanes have no more bytes than this: not all of these lanes may be claimed. */
const COMES_ALONG = 4_096
/** The moment of the transaction, as its first statement set it unless it is given. */
const AT = 'coalesce($5::bigint, current_setting($$sluice.at$$, true)::bigint)'
/**
 * Where lines are looked at, all of them with one statement: the least `rings` of each, how many of it, and up to when. The moment
 * is asked for once, not with each lane.
 */
const LINES = `(select b.*, ${AT} as at from unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[])
  with ordinality as b (flow, line, least, most, n) offset 0) a`
const OF_LINE = 'flow = a.flow and line = a.line and rings >= a.least and id not in (select unnest($6::text[]))'
/** A lane that runs stays where it stood, and is passed by without being locked. */
const IS_OPEN = '(lease is null or lease <= a.at)'
const READY = `select l.*, e.*, a.n from ${LINES} cross join lateral (
    select ${STANDING_COLUMNS} from lanes where ${OF_LINE} and rings <= a.at and ${IS_OPEN}
    order by rings, ring_ticket limit a.most for update skip locked
  ) l left join lateral (
    select ${PLACED_COLUMNS.join(', ')} from events
    where seq = l.first_event and l.waiting = 1 and l.first_size <= ${COMES_ALONG} and purged_hash = '' offset 0
  ) e on true`
/**
 * When the first lease of those ends that are passed by; not looked for where so many stand early that it is soon enough to ask again
 * when these have been put right.
 */
const lapsesUnless = (early: string): string => `select null, min(due), null, true from lanes
    where ${OF_LINE} and rings <= a.at and not ${IS_OPEN} and ${early} < a.most having count(*) > 0`
/** Of lines the first that may be ready, which are about to be claimed; and of each the one after now: behind that all may be deleted. */
const HEADS = `select l.id, l.due, l.rings, l.is_far, a.n from ${LINES} cross join lateral (
    with near as materialized (
      select id, due, rings from lanes where ${OF_LINE} and rings <= a.at and ${IS_OPEN} order by rings, ring_ticket limit a.most
    )
    select id, due, rings, false as is_far from near
    union all
    (select id, due, rings, true from lanes where ${OF_LINE} and rings > a.at order by rings, ring_ticket limit 1)
    union all
    ${lapsesUnless('(select count(*) from near)')}
  ) l order by a.n, l.rings`
/** Lanes that stand too early are seen through, so many of them. */
const SEEN_THROUGH = 32
const HEADS_THROUGH = `select l.id, l.due, l.rings, l.is_far, a.n from ${LINES} cross join lateral (
    with seen as materialized (
      select id, due, rings from lanes where ${OF_LINE} and (rings > a.at or ${IS_OPEN}) order by rings, ring_ticket limit a.most
    )
    select id, due, rings, false as is_far from seen
    union all
    ${lapsesUnless('(select count(*) from seen where rings <= a.at)')}
  ) l order by a.n, l.rings`
/** Where lines begin, whoever stands there. */
const FRONTS = `select (select rings from lanes where flow = a.flow and line = a.line and rings >= a.least order by rings, ring_ticket limit 1)
  from ${LINES} order by a.n`

/** Of one line: locked, and unlike what others hold. */
interface Ready {
  readonly lanes: readonly Row[]
  readonly events: readonly PlacedEvent[]
}

export async function readyLanes(db: Db, asked: readonly AskedLine[], look: Look): Promise<readonly Ready[]> {
  const rows = await lookedAt(db, READY, asked, look)
  return perLine(rows, asked).map((lanes) => ({
    lanes,
    events: lanes.flatMap((row) => (row[STANDING_WIDTH] === null ? [] : placedOf(row, STANDING_WIDTH))),
  }))
}

/** The first of a line, but for those that are passed by. */
export interface Head {
  readonly lanes: readonly { readonly id: LaneId; readonly due: Millis; readonly rings: Millis }[]
  readonly isAll: boolean
  /** Of those that are passed by the first that has to be looked at again. */
  readonly lapses: Millis
}

export async function headsOf(db: Db, asked: readonly AskedLine[], look: Look): Promise<readonly Head[]> {
  const rows = await lookedAt(db, HEADS, asked, look)
  return perLine(rows, asked).map((its, n) => {
    const { lanes, lapses } = withoutPassed(its)
    const near = lanes.filter((row) => row[3] === false)
    const isWhole = near.length < (asked[n]?.most ?? 0)
    // Between those and the one after now there may be others.
    return { lanes: (isWhole ? lanes : near).map(standingOf), isAll: isWhole && near.length === lanes.length, lapses }
  })
}

/** Those that stand too early are seen through. */
export async function headsThrough(db: Db, asked: readonly AskedLine[], look: Look): Promise<readonly Head[]> {
  const through = asked.map((line) => ({ ...line, most: SEEN_THROUGH }))
  const rows = await lookedAt(db, HEADS_THROUGH, through, look)
  return perLine(rows, asked).map((its) => {
    const { lanes, lapses } = withoutPassed(its)
    return { lanes: lanes.map(standingOf), isAll: lanes.length < SEEN_THROUGH, lapses }
  })
}

function withoutPassed(rows: readonly Row[]): { readonly lanes: readonly Row[]; readonly lapses: Millis } {
  const passed = rows.find((row) => row[0] === null)
  return { lanes: rows.filter((row) => row !== passed), lapses: passed === undefined ? NEVER : number(passed[1]) }
}

/** Undefined where nobody stands. */
export async function frontsOf(db: Db, asked: readonly AskedLine[]): Promise<readonly (Millis | undefined)[]> {
  const rows = await db.rows(FRONTS, [...columnsOf(asked), null])
  return rows.map(([front]) => (front === null ? undefined : number(front)))
}

function lookedAt(db: Db, sql: string, asked: readonly AskedLine[], { without, at }: Look): Promise<readonly Row[]> {
  return db.rows(sql, [...columnsOf(asked), at ?? null, without])
}

function columnsOf(asked: readonly AskedLine[]): readonly (readonly unknown[])[] {
  const column = <T>(of: (line: AskedLine) => T): readonly T[] => asked.map(of)
  const lines = [column(({ flow }) => written(flow)), column(({ line }) => line)]
  return [...lines, column(({ from }) => from), column(({ most }) => most)]
}

/** The last cell of a row is the number of its line, from 1 on. */
function perLine(rows: readonly Row[], asked: readonly AskedLine[]): readonly (readonly Row[])[] {
  const found = asked.map((): Row[] => [])
  for (const row of rows) found[number(row.at(-1)) - 1]?.push(row)
  return found
}

function standingOf(row: Row): Head['lanes'][number] {
  return { id: text(row[0]), due: number(row[1]), rings: number(row[2]) }
}
