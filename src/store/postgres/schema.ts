// `migrate` brings a database to the schema of this release. Migrations only go forward, and each step runs once, however many
// processes start at the same time.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SluiceError } from '../../errors.ts'
import type { Db } from './row-cache.ts'
import { ensureFunctions } from './functions.ts'
import { ensureRowTypes } from './row-types.ts'
import { number, text } from './values.ts'
import { ensureWorkView } from './work-view.ts'

/** The migrations are read when the module loads. Opening a store later does not depend on file permissions at that time. */
const MIGRATIONS: readonly string[] = ['0001.sql'].map((step) =>
  readFileSync(new URL(`migrations/${step}`, import.meta.url), 'utf8'),
)

/** `migrate` runs inside a transaction whose search path is the schema. */
export async function migrate(db: Db, schema: string, script: (sql: string) => Promise<void>): Promise<void> {
  await db.query(`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [`sluice/schema/${schema}`])
  // Only the role that creates the schema needs the CREATE right. The schema may have been created for a role without it.
  const [found] = await db.query('select to_regnamespace($1) is not null', [quoteIdentifier(schema)])
  if (found?.[0] !== true) await script(`create schema ${quoteIdentifier(schema)}`)
  const version = await readVersion(db, schema)
  if (version > MIGRATIONS.length) {
    throw new SluiceError(
      'STORE_SCHEMA_NEWER',
      `The schema ${schema} is of version ${version}; this release knows ${MIGRATIONS.length}.`,
    )
  }
  for (const step of MIGRATIONS.slice(version)) await script(step)
  if (version === 0) {
    await db.query('insert into meta (name, routes, schema) values ($1, 1, $2)', [
      randomBytes(5).toString('hex'),
      MIGRATIONS.length,
    ])
  } else if (version < MIGRATIONS.length) await db.query('update meta set schema = $1', [MIGRATIONS.length])
  await ensureRowTypes(db, script)
  await ensureFunctions(db, script)
  const isMade = await ensureWorkView(db, script)
  // Existing readers also get access to new views and tables.
  if (isMade || version < MIGRATIONS.length) await db.query('select share_again()')
}

const OTHER_ROLE = 'Connect as that role, or as one that it was granted to.'

/** `readVersion` returns 0 if the schema has no Sluice tables yet. */
async function readVersion(db: Db, schema: string): Promise<number> {
  const sql = 'select row_security_active(oid), pg_get_userbyid(relowner) from pg_class where oid = to_regclass($1)'
  const [found] = await db.query(sql, [`${quoteIdentifier(schema)}.meta`])
  if (found === undefined) return 0
  // Row-level security shows no rows to a role that is not the owner, and that role must not take the store for empty.
  if (found[0] === true) {
    const whose = `The schema ${schema} belongs to the role ${text(found[1])}`
    throw new SluiceError('STORE_UNWRITABLE', `${whose}.`, undefined, OTHER_ROLE)
  }
  return number((await db.query('select schema from meta'))[0]?.[0])
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
