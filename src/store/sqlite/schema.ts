// Brings a file to the schema of this release: forward only, each step once, in one transaction.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'

/** Read with the module: what is needed to open a file does not depend on who may read what by then. */
const STEPS: readonly string[] = ['0001.sql'].map((step) =>
  readFileSync(new URL(`migrations/${step}`, import.meta.url), 'utf8'),
)

/** Marks the file as one of ours ("slce"), so that somebody else's database is never changed. */
const APPLICATION_ID = 0x73_6c_63_65

export function migrate(db: DatabaseSync, file: string): void {
  const version = checkSchema(db, file)
  if (version === STEPS.length) return
  db.exec('begin immediate')
  for (const step of STEPS.slice(version)) db.exec(step)
  if (version === 0) {
    const meta = db.prepare('insert into meta (name, value) values (?, ?)')
    meta.run('name', randomBytes(5).toString('hex'))
    meta.run('routes', 1)
    meta.run('counter', 0)
    meta.run('identified', 0)
    meta.run('listed', 0)
    meta.run('begun', '')
  }
  db.exec(`pragma user_version = ${STEPS.length}`)
  db.exec(`pragma application_id = ${APPLICATION_ID}`)
  db.exec('commit')
}

/** The file's schema, 0 for an empty file. Throws when it is not ours or is newer than this release. */
export function checkSchema(db: DatabaseSync, file: string): number {
  const read = (pragma: string): number => Number(Object.values(db.prepare(`pragma ${pragma}`).get() ?? {})[0])
  const version = read('user_version')
  const application = read('application_id')
  const empty = Number(db.prepare('select count(*) as n from sqlite_schema').get()?.['n']) === 0
  if (empty && version === 0) return 0
  if (application !== APPLICATION_ID) {
    throw new SluiceError('STORE_NOT_A_DATABASE', `${file} is a SQLite database, but not one of Sluice.`)
  }
  if (version > STEPS.length) {
    throw new SluiceError('STORE_SCHEMA_NEWER', `${file} has schema ${version}; this release knows ${STEPS.length}.`)
  }
  return version
}
