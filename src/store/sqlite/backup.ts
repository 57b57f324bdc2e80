// `backupSqlite` copies the file while a process works on it. The copy holds everything acknowledged before it began.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'
import { toSluiceError } from './statements.ts'
import { checkSchema } from './schema.ts'

export interface Backup {
  readonly file: string
  readonly bytes: number
  readonly events: number
}

/** `backupSqlite` opens the file as an ordinary reader, so the working process goes on. It never overwrites a file,
    and removes a copy that fails verification. */
export function backupSqlite(file: string, to: string): Backup {
  if (!existsSync(file)) throw new SluiceError('STORE_MISSING', `No file exists at ${file}.`)
  if (existsSync(to))
    throw new SluiceError('STORE_UNWRITABLE', `${to} already exists.`, undefined, 'Choose another name.')
  const unfinished = `${to}.unfinished`
  try {
    rmSync(unfinished, { force: true })
    // Create the file with its mode before it has any content: the copy holds all data of the store, and only its owner
    // may read it.
    closeSync(openSync(unfinished, 'wx', 0o600))
    copy(file, unfinished)
    const events = verifyCopy(unfinished)
    renameSync(unfinished, to)
    syncPath(dirname(to))
    return { file: to, bytes: statSync(to).size, events }
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw toSluiceError(error, file)
  }
}

function copy(file: string, to: string): void {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    checkSchema(db, file)
    db.exec('pragma busy_timeout = 5000')
    db.prepare('vacuum into ?').run(to)
  } finally {
    db.close()
  }
  syncPath(to)
}

const KEEP_OLDER = 'Keep the older backups, and check the file itself with pragma integrity_check.'

/** `verifyCopy` checks the copy now. Otherwise a damaged backup would be found only when somebody needs it. */
function verifyCopy(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const found = db.prepare('pragma integrity_check').get() as { readonly integrity_check: string }
    if (found.integrity_check !== 'ok') {
      const what = `The copy is damaged and was removed: ${found.integrity_check}.`
      throw new SluiceError('STORE_DAMAGED', what, undefined, KEEP_OLDER)
    }
    return Number(db.prepare('select count(*) as n from events').get()?.['n'])
  } finally {
    db.close()
  }
}

function syncPath(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
