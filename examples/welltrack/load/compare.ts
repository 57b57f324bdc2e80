// `compareMetrics` compares what is in the tables with what was sent.
import type { Database } from '../../kit/database.ts'

export interface Comparison {
  /** Metrics that should be there, are there, have another value, or should not be there. */
  readonly wanted: number
  readonly found: number
  readonly wrong: number
  readonly extra: number
  /** Activities of Strava that are there. */
  readonly activities: number
}

/** `wanted` has the value of each metric of Garmin by its hash. */
export async function compareMetrics(database: Database, wanted: ReadonlyMap<string, number>): Promise<Comparison> {
  const rows = await database.rows("select dedupe_hash, value_num from wt_health_metrics where source = 'garmin'")
  const found = new Map(rows.map((row) => [String(row['dedupe_hash']), Number(row['value_num'])]))
  return {
    wanted: wanted.size,
    found: found.size,
    wrong: [...wanted].filter(([hash, value]) => found.get(hash) !== value).length,
    extra: [...found.keys()].filter((hash) => !wanted.has(hash)).length,
    activities: await countMetrics(database, 'strava'),
  }
}

export async function countMetrics(database: Database, source: 'garmin' | 'strava'): Promise<number> {
  const [row] = await database.rows('select count(*) as n from wt_health_metrics where source = ?', [source])
  return Number(row?.['n'])
}
