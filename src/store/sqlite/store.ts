// The default store: one file, one working process, any number of readers. Nothing to install, nothing to run.
import { closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Store } from '../contract/index.ts'
import { TableStore, type Commits, type LanesRead } from '../rules/store.ts'
import { NO_OUTBOX, type OutboxTable, type Tables } from '../rules/tables.ts'
import { GroupCommit } from './commit.ts'
import { SqliteEvents } from './events.ts'
import { fault } from './faults.ts'
import { Identities } from './identities.ts'
import { LaneRuns } from './lane-runs.ts'
import { SqliteLanes } from './lanes.ts'
import { SqliteLimits } from './limits.ts'
import { LogSync } from './log-sync.ts'
import { SqlitePlaces } from './places.ts'
import { SqliteRecords } from './records.ts'
import { SqliteLetters, SqliteMarks, SqliteRuns } from './runs.ts'
import { SameFile } from './same-file.ts'
import { checkSchema, migrate } from './schema.ts'
import { SqliteDocs, SqliteSmall } from './small-tables.ts'
import { number, Statements, text } from './statements.ts'
import { keepWorkView } from './work-view.ts'
import { WriteBack } from './write-back.ts'

export interface SqliteOptions {
  /** A path, or `:memory:`. */
  readonly file: string
  readonly clock?: Clock
  /** Reads while another process works on the file. */
  readonly readOnly?: boolean
  /** The most the file may grow to: beyond it appends fail with STORE_FULL, and what is there still runs. */
  readonly maxBytes?: number
}

export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { clock = systemClock, readOnly = false } = options
  const file = trueName(options.file)
  const opened: DatabaseSync[] = []
  const close = (): void => {
    for (const db of opened.toReversed()) db.close()
  }
  try {
    const version = lookAt(file)
    if (readOnly && version === 0) throw new SluiceError('STORE_MISSING', `There is nothing of Sluice at ${file} yet.`)
    if (!readOnly && file !== IN_MEMORY) opened.push(lockOut(file))
    if (!readOnly) makeOurs(file)
    const db = new DatabaseSync(file, { readOnly })
    opened.push(db)
    if (!readOnly) prepare(db, file)
    const tables = new SqliteTables(db, { maxBytes: options.maxBytes ?? Infinity, readOnly })
    const log = readOnly || file === IN_MEMORY ? undefined : new WriteBack(db, file)
    const disk = readOnly || file === IN_MEMORY ? undefined : onDisk(file, clock)
    const commit = new GroupCommit({
      db,
      file,
      readOnly,
      tables,
      committed: () => log?.committed(),
      sync: disk === undefined ? undefined : () => disk.sync(),
      close: async () => {
        await log?.close()
        await disk?.close()
        close()
      },
    })
    const commits: Commits = {
      durable: commit.durable,
      write: (work) => commit.write(() => work(tables, clock.now())),
      read: (work, lanes) => commit.read(lanes, () => work(tables, clock.now())),
      moment: () => commit.glance(() => ({ now: clock.now(), routes: tables.routes() })),
      close: () => commit.close(),
    }
    return new TableStore({ commits, clock })
  } catch (error) {
    close()
    throw fault(error, file)
  }
}

const IN_MEMORY = ':memory:'

/** Where commits are safe. By where it really is: a link that is turned later, or another working folder, makes it no other. */
function onDisk(file: string, clock: Clock): Pick<LogSync, 'sync' | 'close'> {
  const path = realpathSync(file)
  const log = new LogSync(path)
  const same = new SameFile(path, clock)
  return {
    sync: async () => {
      await log.sync()
      await same.check()
    },
    close: () => log.close(),
  }
}

/** Whatever a link calls it, it is the same file. */
function trueName(file: string): string {
  return file !== IN_MEMORY && existsSync(file) ? realpathSync(file) : file
}

/** The schema of what is there, 0 for nothing. Only reads, so that what is not ours stays as it is, to the last byte. */
function lookAt(file: string): number {
  if (file === IN_MEMORY || !existsSync(file)) return 0
  const found = statSync(file)
  if (!found.isFile()) throw new SluiceError('STORE_UNWRITABLE', `${file} is not a file.`)
  if (found.size === 0) return 0
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return checkSchema(db, file)
  } finally {
    db.close()
  }
}

/** What strangers sent is for nobody else. The log and its index get the mode of the file. */
function makeOurs(file: string): void {
  if (file === IN_MEMORY || existsSync(file)) return
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch {
    // Why it cannot be made, SQLite says.
  }
}

/** Held by the one process that works on the file. The system frees it when the process dies, however it dies. */
function lockOut(file: string): DatabaseSync {
  makeOurs(`${file}-lock`)
  const lock = new DatabaseSync(`${file}-lock`)
  try {
    lock.exec('pragma locking_mode = exclusive; pragma journal_mode = off; begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    const found = fault(error, file)
    if (found.code !== 'STORE_IN_USE') throw found
    throw new SluiceError('STORE_IN_USE', `Another process works on ${file}.`, error)
  }
}

/** A commit writes each page that it changed, in two steps each: half as many pages are worth their size. */
const PAGE_BYTES = 8_192
const CACHE_KB = 4_096

/** A commit is synced by `LogSync`, before it is answered: with `full` SQLite would do it as well, and stop the event loop for it. */
function prepare(db: DatabaseSync, file: string): void {
  db.exec(
    `pragma page_size = ${PAGE_BYTES}; pragma journal_mode = wal; pragma synchronous = normal; pragma busy_timeout = 5000`,
  )
  db.exec(`pragma cache_size = -${CACHE_KB}; pragma temp_store = memory`)
  migrate(db, file)
  keepWorkView(db)
}

/** Numbers are drawn from memory; the file knows an upper bound, so that none repeats after a crash. */
const DRAWN_AT_ONCE = 10_000

class SqliteTables implements Tables {
  readonly name: string
  readonly lanes: SqliteLanes
  readonly places: SqlitePlaces
  readonly events: SqliteEvents
  readonly runs: SqliteRuns
  readonly letters: SqliteLetters
  readonly marks: SqliteMarks
  readonly outbox: OutboxTable = NO_OUTBOX
  readonly limits: SqliteLimits
  readonly small: SqliteSmall
  readonly docs: SqliteDocs
  readonly records: SqliteRecords
  readonly #sql: Statements
  readonly #identities: Identities
  readonly #laneRuns: LaneRuns
  readonly #maxBytes: number
  #counter: number
  #bound: number
  #routes: number

  constructor(db: DatabaseSync, { maxBytes, readOnly }: { readonly maxBytes: number; readonly readOnly: boolean }) {
    const sql = new Statements(db)
    this.#sql = sql
    this.#maxBytes = maxBytes
    this.name = text(this.#meta('name'))
    this.#counter = number(this.#meta('counter'))
    this.#bound = this.#counter
    this.#routes = number(this.#meta('routes'))
    this.places = new SqlitePlaces(sql)
    this.lanes = new SqliteLanes(sql, this.places, readOnly)
    this.#identities = new Identities(sql, readOnly)
    this.events = new SqliteEvents(sql, this.#identities, this.draw)
    this.#laneRuns = new LaneRuns(sql, readOnly)
    this.runs = new SqliteRuns(sql, this.name, this.#laneRuns)
    this.letters = new SqliteLetters(sql)
    this.marks = new SqliteMarks(sql)
    this.limits = new SqliteLimits(sql)
    this.small = new SqliteSmall(sql)
    this.docs = new SqliteDocs(sql)
    // Who only reads has no memory that keeps up with what is written.
    const laneRuns = readOnly ? undefined : this.#laneRuns
    this.records = new SqliteRecords(sql, { events: this.events, lanes: this.lanes, laneRuns, store: this.name })
  }

  readonly draw = (): number => {
    this.#counter++
    if (this.#counter > this.#bound) {
      this.#bound = this.#counter + DRAWN_AT_ONCE
      this.#sql.run(`update meta set value = ? where name = 'counter'`, this.#bound)
    }
    return this.#counter
  }

  hasRoomFor(bytes: number): boolean {
    return this.#maxBytes === Infinity || this.records.bytes() + bytes <= this.#maxBytes
  }

  routes(): number {
    return this.#routes
  }

  raiseRoutes(): void {
    this.#routes++
    this.#sql.run(`update meta set value = ? where name = 'routes'`, this.#routes)
  }

  isBehind(looked: LanesRead): boolean {
    return this.lanes.isBehind(looked)
  }

  catchUp(looked: LanesRead): void {
    this.lanes.catchUp(looked)
  }

  /** The last thing before the commit. */
  finish(): void {
    this.lanes.finish()
    this.#sql.catchUp()
  }

  /** A rollback may be told more than once: what could not be read the first time is read then. */
  ended(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      // First of all: what is still to be written belongs to the commit that never was, and any reading would write it.
      this.#sql.forget()
      // The file no longer has what memory says it has.
      this.#bound = this.#counter
      this.#routes = number(this.#meta('routes'))
    }
    this.#identities.letGo(how)
    this.#laneRuns.letGo(how)
    this.lanes.letGo(how)
  }

  #meta(name: string): string | number | null | Uint8Array {
    return this.#sql.get('select value from meta where name = ?', name)?.[0] ?? null
  }
}
