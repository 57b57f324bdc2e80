// Brings a database to the schema of this release: forward only, each step once, however many processes start at once.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SluiceError } from '../../errors.ts'
import type { Db } from './part.ts'
import { keepRowTypes } from './row-types.ts'
import { number, text } from './values.ts'
import { keepWorkView } from './work-view.ts'

/** Read with the module: what is needed to open a store does not depend on who may read what by then. */
const STEPS: readonly string[] = ['0001.sql'].map((step) =>
  readFileSync(new URL(`migrations/${step}`, import.meta.url), 'utf8'),
)

/** Inside a transaction, in the schema's own search path. */
export async function migrate(db: Db, schema: string, script: (sql: string) => Promise<void>): Promise<void> {
  await db.rows(`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [`sluice/schema/${schema}`])
  // Only who makes it needs the right to: it may have been made for a role that has no other.
  const [found] = await db.rows('select to_regnamespace($1) is not null', [quoted(schema)])
  if (found?.[0] !== true) await script(`create schema ${quoted(schema)}`)
  const version = await versionOf(db, schema)
  if (version > STEPS.length) {
    throw new SluiceError(
      'STORE_SCHEMA_NEWER',
      `The schema ${schema} is of version ${version}; this release knows ${STEPS.length}.`,
    )
  }
  for (const step of STEPS.slice(version)) await script(step)
  if (version === 0) {
    await db.rows('insert into meta (name, routes, schema) values ($1, 1, $2)', [
      randomBytes(5).toString('hex'),
      STEPS.length,
    ])
  } else if (version < STEPS.length) await db.rows('update meta set schema = $1', [STEPS.length])
  await keepRowTypes(db, script)
  const isMade = await keepWorkView(db, script)
  // Readers read what is new as well.
  if (isMade || version < STEPS.length) await db.rows('select share_again()')
}

/** 0: there is nothing of ours yet. */
async function versionOf(db: Db, schema: string): Promise<number> {
  const sql = 'select row_security_active(oid), pg_get_userbyid(relowner) from pg_class where oid = to_regclass($1)'
  const [found] = await db.rows(sql, [`${quoted(schema)}.meta`])
  if (found === undefined) return 0
  // Whoever is no owner is shown nothing of what is there: he must not take the store for empty.
  if (found[0] === true) {
    const whose = `The schema ${schema} belongs to the role ${text(found[1])}`
    throw new SluiceError('STORE_UNWRITABLE', `${whose}: connect as that role, or as one it was granted to.`)
  }
  return number((await db.rows('select schema from meta'))[0]?.[0])
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
