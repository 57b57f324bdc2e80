// The types of rows on the server. They are made with the schema, by their columns; nothing stored depends on them.
import type { RowType } from './columns.ts'
import { ADD_EVENTS, SET_EVENTS } from './event-rows.ts'
import { ADD_LANES, BEGIN_LANES, NAME_LANES, PUSH_LANES, SET_LANES } from './lane-rows.ts'
import type { Db } from './part.ts'
import { ADD_PLACES, REMOVE_PLACES } from './places.ts'
import { ADD_PLAIN_RUNS, ADD_RUNS } from './runs.ts'
import { text } from './values.ts'

const ROW_TYPES: readonly RowType[] = [
  ADD_EVENTS,
  SET_EVENTS,
  ADD_LANES,
  SET_LANES,
  PUSH_LANES,
  BEGIN_LANES,
  NAME_LANES,
  ADD_PLACES,
  REMOVE_PLACES,
  ADD_RUNS,
  ADD_PLAIN_RUNS,
]
const MISSING = 'select name from unnest($1::text[]) as name where to_regtype(name) is null'

/** Inside the migration. Those of other releases stay: one of their processes may be at work. */
export async function keepRowTypes(
  db: Db,
  script: (sql: string) => Promise<void>,
  types: readonly RowType[] = ROW_TYPES,
): Promise<void> {
  const missing = new Set((await db.rows(MISSING, [types.map(({ name }) => name)])).map(([name]) => text(name)))
  if (missing.size > 0)
    await script(
      types
        .filter(({ name }) => missing.has(name))
        .map(made)
        .join(';\n'),
    )
}

function made({ name, columns }: RowType): string {
  return `create type ${name} as (${Object.entries(columns)
    .map(([column, type]) => `${column} ${type}`)
    .join(', ')})`
}
