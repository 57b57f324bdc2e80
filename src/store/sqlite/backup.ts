// A copy of the file while a process works on it: all that was acknowledged before it began is in it, whole.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'
import { fault } from './faults.ts'
import { checkSchema } from './schema.ts'

export interface Backup {
  readonly file: string
  readonly bytes: number
  readonly events: number
}

/** Reads as any reader does: the working process goes on. Nothing is overwritten; a copy that is not whole is not kept. */
export function backupSqlite(file: string, to: string): Backup {
  if (!existsSync(file)) throw new SluiceError('STORE_MISSING', `There is nothing at ${file}.`)
  if (existsSync(to)) throw new SluiceError('STORE_UNWRITABLE', `${to} is there already; choose another name.`)
  const unfinished = `${to}.unfinished`
  try {
    rmSync(unfinished, { force: true })
    // Before there is anything in it: it has all that the store has, and is for nobody else.
    closeSync(openSync(unfinished, 'wx', 0o600))
    copy(file, unfinished)
    const events = looked(unfinished)
    renameSync(unfinished, to)
    sync(dirname(to))
    return { file: to, bytes: statSync(to).size, events }
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw fault(error, file)
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
  sync(to)
}

/** Of a copy that nobody has looked at one hears when it is needed. */
function looked(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const found = db.prepare('pragma integrity_check').get() as { readonly integrity_check: string }
    if (found.integrity_check !== 'ok') {
      throw new SluiceError('STORE_DAMAGED', `The copy of the file is not whole: ${found.integrity_check}.`)
    }
    return Number(db.prepare('select count(*) as n from events').get()?.['n'])
  } finally {
    db.close()
  }
}

function sync(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
