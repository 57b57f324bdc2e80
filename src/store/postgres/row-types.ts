// `ensureRowTypes` creates the composite types through which rows are sent. No stored data depends on these types.
import type { RowType } from './columns.ts'
import { ADD_EVENTS, SET_EVENTS } from './event-rows.ts'
import { ADD_LANES, ARRIVING_LANES, NAME_LANES, SET_LANES } from './lane-rows.ts'
import type { Db } from './row-cache.ts'
import { ADD_PLACES, REMOVE_PLACES } from './placements.ts'
import { ADD_PLAIN_RUNS, ADD_RUNS } from './runs.ts'
import { text } from './values.ts'

const ROW_TYPES: readonly RowType[] = [
  ADD_EVENTS,
  SET_EVENTS,
  ADD_LANES,
  ARRIVING_LANES,
  SET_LANES,
  NAME_LANES,
  ADD_PLACES,
  REMOVE_PLACES,
  ADD_RUNS,
  ADD_PLAIN_RUNS,
]
const MISSING = 'select name from unnest($1::text[]) as name where to_regtype(name) is null'

/**
 * `ensureRowTypes` runs inside the migration. It keeps the types of other releases, because a process of another release may
 * still be running.
 */
export async function ensureRowTypes(
  db: Db,
  script: (sql: string) => Promise<void>,
  types: readonly RowType[] = ROW_TYPES,
): Promise<void> {
  const missing = new Set((await db.query(MISSING, [types.map(({ name }) => name)])).map(([name]) => text(name)))
  if (missing.size > 0)
    await script(
      types
        .filter(({ name }) => missing.has(name))
        .map(buildCreateType)
        .join(';\n'),
    )
}

function buildCreateType({ name, columns }: RowType): string {
  return `create type ${name} as (${Object.entries(columns)
    .map(([column, type]) => `${column} ${type}`)
    .join(', ')})`
}
