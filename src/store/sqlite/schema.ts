// `migrate` brings a file to the schema of this release: forward only, each step once, in one transaction.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'

/** The steps are read with the module, because file permissions may have changed when a database is opened. */
const MIGRATIONS: readonly string[] = ['0001.sql'].map((step) =>
  readFileSync(new URL(`migrations/${step}`, import.meta.url), 'utf8'),
)

/** The file begins with a comment; SQLite stores the statement behind it. */
const WORK_VIEW = readFileSync(new URL('work-view.sql', import.meta.url), 'utf8')
  .replace(/^(?:--.*\n)+/, '')
  .trim()

/** The application id "slce" marks the file as a Sluice database, so that a foreign database is never changed. */
const APPLICATION_ID = 0x73_6c_63_65

export function migrate(db: DatabaseSync, file: string): void {
  const version = checkSchema(db, file)
  if (version === MIGRATIONS.length) return
  db.exec('begin immediate')
  for (const step of MIGRATIONS.slice(version)) db.exec(step)
  if (version === 0) {
    const meta = db.prepare('insert into meta (name, value) values (?, ?)')
    meta.run('name', randomBytes(5).toString('hex'))
    meta.run('routes', 1)
    meta.run('counter', 0)
    meta.run('identified', 0)
    meta.run('listed', 0)
    meta.run('begun', '')
  }
  db.exec(`pragma user_version = ${MIGRATIONS.length}`)
  db.exec(`pragma application_id = ${APPLICATION_ID}`)
  db.exec('commit')
}

/** `checkSchema` returns the schema version of the file, 0 if it is empty. It throws if the file is not ours or is
    newer than this release. */
export function checkSchema(db: DatabaseSync, file: string): number {
  const read = (pragma: string): number => Number(Object.values(db.prepare(`pragma ${pragma}`).get() ?? {})[0])
  const version = read('user_version')
  const application = read('application_id')
  const empty = Number(db.prepare('select count(*) as n from sqlite_schema').get()?.['n']) === 0
  if (empty && version === 0) return 0
  if (application !== APPLICATION_ID) {
    throw new SluiceError('STORE_NOT_A_DATABASE', `${file} is a SQLite database, but not a Sluice database.`)
  }
  if (version > MIGRATIONS.length) {
    throw new SluiceError(
      'STORE_SCHEMA_NEWER',
      `${file} has schema ${version}; this release knows ${MIGRATIONS.length}.`,
    )
  }
  return version
}

/** `ensureWorkView` creates the view, also in a file of an older release, and replaces an older version of the view. */
export function ensureWorkView(db: DatabaseSync): void {
  const found = db.prepare(`select sql from sqlite_schema where type = 'view' and name = 'work'`).get()?.['sql']
  // SQLite stores the text with its first words in capitals.
  if (found === WORK_VIEW.replace('create view', 'CREATE VIEW')) return
  db.exec(`begin immediate; drop view if exists work; ${WORK_VIEW}; commit`)
}
