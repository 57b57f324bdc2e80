// The statements that scan the deadline index: which lanes of a flow and health are ready, and when the next lane will be. One
// statement scans all flows of a claim, at the one time that the transaction has. Scans at two different times would miss a
// lane that becomes due between them.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { LaneHealth } from '../../model/lane.ts'
import type { PlacedEvent } from '../core/tables.ts'
import { PLACED_COLUMNS, toPlacedEvent } from './event-rows.ts'
import { POSITIONED_LANE_COLUMNS, POSITIONED_LANE_WIDTH } from './lane-rows.ts'
import type { Db } from './row-cache.ts'
import { number, text, escapeText, type Row } from './values.ts'

export interface LineKey {
  readonly flow: string
  readonly line: LaneHealth
}

export interface LineScan extends LineKey {
  /** No lane is before this position. */
  readonly from: Millis
  /** The maximum number of lanes. */
  readonly most: number
}

interface ScanOptions {
  readonly without: readonly LaneId[]
  /** Undefined for the time that the transaction has set. */
  readonly at: Millis | undefined
}

/** An event is returned with its lane only up to this size, because not every returned lane may be claimed. */
const MAX_INLINE_EVENT_BYTES = 4_096
/** The time of the transaction: the parameter, or the value that the first statement of the transaction has set. */
const AT = 'coalesce($5::bigint, current_setting($$sluice.at$$, true)::bigint)'
/**
 * The index ranges to scan, all in one statement: flow, health, the least `rings`, the number of lanes, and the time. `offset
 * 0` makes the server compute the time once, not for each lane.
 */
const LINES = `(select b.*, ${AT} as at from unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[])
  with ordinality as b (flow, line, least, most, n) offset 0) a`
const OF_LINE = 'flow = a.flow and line = a.line and rings >= a.least and id not in (select unnest($6::text[]))'
/** A running lane keeps its position; the scan skips it without locking it. */
const IS_OPEN = '(lease is null or lease <= a.at)'
const READY = `select l.*, e.*, a.n from ${LINES} cross join lateral (
    select ${POSITIONED_LANE_COLUMNS} from lanes where ${OF_LINE} and rings <= a.at and ${IS_OPEN}
    order by rings, ring_ticket limit a.most for update skip locked
  ) l left join lateral (
    select ${PLACED_COLUMNS.join(', ')} from events
    where seq = l.first_event and l.waiting = 1 and l.first_size <= ${MAX_INLINE_EVENT_BYTES} and purged_hash = '' offset 0
  ) e on true`
/**
 * Selects the first lease end of the skipped lanes. It selects nothing if so many lanes are too early that the caller will scan
 * again after they were moved.
 */
const selectFirstLapseUnless = (early: string): string => `select null, min(due), null, true from lanes
    where ${OF_LINE} and rings <= a.at and not ${IS_OPEN} and ${early} < a.most having count(*) > 0`
/**
 * Selects, for each range, the first lanes that may be ready and are about to be claimed, and the first lane after now. Behind
 * that one, every entry may be a deleted one.
 */
const HEADS = `select l.id, l.due, l.rings, l.is_far, a.n from ${LINES} cross join lateral (
    with near as materialized (
      select id, due, rings from lanes where ${OF_LINE} and rings <= a.at and ${IS_OPEN} order by rings, ring_ticket limit a.most
    )
    select id, due, rings, false as is_far from near
    union all
    (select id, due, rings, true from lanes where ${OF_LINE} and rings > a.at order by rings, ring_ticket limit 1)
    union all
    ${selectFirstLapseUnless('(select count(*) from near)')}
  ) l order by a.n, l.rings`
/** A scan that continues past lanes at too early positions inspects at most this many lanes. */
const MAX_EARLY_SCANNED = 32
const HEADS_THROUGH = `select l.id, l.due, l.rings, l.is_far, a.n from ${LINES} cross join lateral (
    with seen as materialized (
      select id, due, rings from lanes where ${OF_LINE} and (rings > a.at or ${IS_OPEN}) order by rings, ring_ticket limit a.most
    )
    select id, due, rings, false as is_far from seen
    union all
    ${selectFirstLapseUnless('(select count(*) from seen where rings <= a.at)')}
  ) l order by a.n, l.rings`
/** Selects the first position of each range, including positions of running lanes. */
const FRONTS = `select (select rings from lanes where flow = a.flow and line = a.line and rings >= a.least order by rings, ring_ticket limit 1)
  from ${LINES} order by a.n`

/** `ReadyRows` holds the ready lanes of one range that were locked; lanes that other transactions hold are skipped. */
interface ReadyRows {
  readonly lanes: readonly Row[]
  readonly events: readonly PlacedEvent[]
}

export async function queryReadyLanes(
  db: Db,
  asked: readonly LineScan[],
  options: ScanOptions,
): Promise<readonly ReadyRows[]> {
  const rows = await runScan(db, READY, asked, options)
  return groupByLine(rows, asked).map((lanes) => ({
    lanes,
    events: lanes.flatMap((row) =>
      row[POSITIONED_LANE_WIDTH] === null ? [] : toPlacedEvent(row, POSITIONED_LANE_WIDTH),
    ),
  }))
}

/** `LineHead` holds the first lanes of a range, without the skipped ones. */
export interface LineHead {
  readonly lanes: readonly { readonly id: LaneId; readonly due: Millis; readonly rings: Millis }[]
  readonly isAll: boolean
  /** The first lease end among the skipped lanes. */
  readonly lapses: Millis
}

export async function queryHeads(
  db: Db,
  asked: readonly LineScan[],
  options: ScanOptions,
): Promise<readonly LineHead[]> {
  const rows = await runScan(db, HEADS, asked, options)
  return groupByLine(rows, asked).map((its, n) => {
    const { lanes, lapses } = splitRunning(its)
    const near = lanes.filter((row) => row[3] === false)
    const isWhole = near.length < (asked[n]?.most ?? 0)
    // If the scan was cut off, there may be other lanes between the last near lane and the first lane after now.
    return {
      lanes: (isWhole ? lanes : near).map(toLineHeadLane),
      isAll: isWhole && near.length === lanes.length,
      lapses,
    }
  })
}

/** `queryHeadsPastEarly` continues past lanes at too early positions. */
export async function queryHeadsPastEarly(
  db: Db,
  asked: readonly LineScan[],
  options: ScanOptions,
): Promise<readonly LineHead[]> {
  const through = asked.map((line) => ({ ...line, most: MAX_EARLY_SCANNED }))
  const rows = await runScan(db, HEADS_THROUGH, through, options)
  return groupByLine(rows, asked).map((its) => {
    const { lanes, lapses } = splitRunning(its)
    return { lanes: lanes.map(toLineHeadLane), isAll: lanes.length < MAX_EARLY_SCANNED, lapses }
  })
}

function splitRunning(rows: readonly Row[]): { readonly lanes: readonly Row[]; readonly lapses: Millis } {
  const lapse = rows.find((row) => row[0] === null)
  return { lanes: rows.filter((row) => row !== lapse), lapses: lapse === undefined ? NEVER : number(lapse[1]) }
}

/** `queryFronts` returns undefined for a range without lanes. */
export async function queryFronts(db: Db, asked: readonly LineScan[]): Promise<readonly (Millis | undefined)[]> {
  const rows = await db.query(FRONTS, [...toScanColumns(asked), null])
  return rows.map(([front]) => (front === null ? undefined : number(front)))
}

function runScan(
  db: Db,
  sql: string,
  asked: readonly LineScan[],
  { without, at }: ScanOptions,
): Promise<readonly Row[]> {
  return db.query(sql, [...toScanColumns(asked), at ?? null, without])
}

function toScanColumns(asked: readonly LineScan[]): readonly (readonly unknown[])[] {
  const column = <T>(of: (line: LineScan) => T): readonly T[] => asked.map(of)
  const lines = [column(({ flow }) => escapeText(flow)), column(({ line }) => line)]
  return [...lines, column(({ from }) => from), column(({ most }) => most)]
}

/** The last column of a row is the number of its range, from 1. */
function groupByLine(rows: readonly Row[], asked: readonly LineScan[]): readonly (readonly Row[])[] {
  const found = asked.map((): Row[] => [])
  for (const row of rows) found[number(row.at(-1)) - 1]?.push(row)
  return found
}

function toLineHeadLane(row: Row): LineHead['lanes'][number] {
  return { id: text(row[0]), due: number(row[1]), rings: number(row[2]) }
}
