// `ensureFunctions` creates the functions with which the server decides the calls that need no rules.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { RowType } from './columns.ts'
import { ADD_EVENTS } from './event-rows.ts'
import { ARRIVING_LANES } from './lane-rows.ts'
import type { Db } from './row-cache.ts'
import { text } from './values.ts'

export interface ServerFunction {
  readonly name: string
  readonly source: string
}

/**
 * `defineFunction` derives the function's name from its text. Two releases with different functions can therefore run side by
 * side.
 */
function defineFunction(file: string, types: Readonly<Record<string, RowType>> = {}): ServerFunction {
  const template = readFileSync(new URL(`functions/${file}.sql`, import.meta.url), 'utf8')
  const source = template.replaceAll(/\$(add_events|arriving_lanes)\b/g, (_, type: string) => types[type]?.name ?? type)
  const name = `${file.replaceAll('-', '_')}_${hash('sha256', source).slice(0, 8)}`
  return { name, source: source.replaceAll('$function', name) }
}

export const APPEND: ServerFunction = defineFunction('append', {
  add_events: ADD_EVENTS,
  arriving_lanes: ARRIVING_LANES,
})
export const SETTLE_AND_CLAIM: ServerFunction = defineFunction('settle-and-claim')

const FUNCTIONS: readonly ServerFunction[] = [APPEND, SETTLE_AND_CLAIM]
const MISSING = 'select name from unnest($1::text[]) as name where to_regproc(name) is null'

/** `ensureFunctions` runs inside the migration. */
export async function ensureFunctions(db: Db, script: (sql: string) => Promise<void>): Promise<void> {
  const missing = new Set((await db.query(MISSING, [FUNCTIONS.map(({ name }) => name)])).map(([name]) => text(name)))
  for (const { name, source } of FUNCTIONS) if (missing.has(name)) await script(source)
}
