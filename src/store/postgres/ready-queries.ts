// The statements that scan the deadline index: which lanes of a flow and health are ready, and when the next lane will be. One
// statement scans all flows of a claim, at the one time that the transaction has. Scans at two different times would miss a
// lane that becomes due between them.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { LaneHealth } from '../../model/lane.ts'
import { POSITIONED_LANE_COLUMNS } from './lane-rows.ts'
import type { Db } from './row-cache.ts'
import { escapeText, millisOrNever, number, type Row } from './values.ts'

export interface QueueKey {
  readonly flow: string
  readonly health: LaneHealth
}

export interface ReadyScan extends QueueKey {
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
const READY = `select l.*, a.n from ${LINES} cross join lateral (
    select ${POSITIONED_LANE_COLUMNS} from lanes where ${OF_LINE} and rings <= a.at and ${IS_OPEN}
    order by rings, ring_ticket limit a.most for update skip locked
  ) l`
/** A scan for the next deadline inspects at most this many lanes. A lane behind them is due after the last one's position. */
const MAX_INSPECTED = 8
/** Selects the first deadline of each range, and the first lease end of the running lanes that keep their old position. */
const NEXT_DEADLINES = `select least(
    (select case when count(*) = ${MAX_INSPECTED} then least(min(due), max(rings)) else min(due) end from (
      select due, rings from lanes where ${OF_LINE} and (rings > a.at or ${IS_OPEN}) order by rings, ring_ticket limit ${MAX_INSPECTED}
    ) first),
    (select min(lease) from lanes where ${OF_LINE} and rings <= a.at and not ${IS_OPEN})
  ) from ${LINES} order by a.n`
/** Selects the first position of each range, including positions of running lanes. */
const FRONTS = `select (select rings from lanes where flow = a.flow and line = a.line and rings >= a.least order by rings, ring_ticket limit 1)
  from ${LINES} order by a.n`

/** `queryReadyLanes` returns and locks the first ready lanes of each range, without those that other transactions hold. */
export async function queryReadyLanes(
  db: Db,
  asked: readonly ReadyScan[],
  options: ScanOptions,
): Promise<readonly (readonly Row[])[]> {
  const found = asked.map((): Row[] => [])
  // The last column of a row is the number of its range, from 1.
  for (const row of await runScan(db, READY, asked, options)) found[number(row.at(-1)) - 1]?.push(row)
  return found
}

/**
 * `queryNextDeadlines` returns when a lane of each range is due next, as far as the transaction has not loaded it. Beside many
 * postponed lanes, the value may be too early.
 */
export async function queryNextDeadlines(
  db: Db,
  asked: readonly ReadyScan[],
  options: ScanOptions,
): Promise<readonly Millis[]> {
  return (await runScan(db, NEXT_DEADLINES, asked, options)).map(([due]) => millisOrNever(due))
}

/** `queryFronts` returns undefined for a range without lanes. */
export async function queryFronts(db: Db, asked: readonly ReadyScan[]): Promise<readonly (Millis | undefined)[]> {
  const rows = await db.query(FRONTS, [...toScanColumns(asked), null])
  return rows.map(([front]) => (front === null ? undefined : number(front)))
}

function runScan(
  db: Db,
  sql: string,
  asked: readonly ReadyScan[],
  { without, at }: ScanOptions,
): Promise<readonly Row[]> {
  return db.query(sql, [...toScanColumns(asked), at ?? null, without])
}

function toScanColumns(asked: readonly ReadyScan[]): readonly (readonly unknown[])[] {
  const column = <T>(of: (scan: ReadyScan) => T): readonly T[] => asked.map(of)
  const lines = [column(({ flow }) => escapeText(flow)), column(({ health }) => health)]
  return [...lines, column(({ from }) => from), column(({ most }) => most)]
}
