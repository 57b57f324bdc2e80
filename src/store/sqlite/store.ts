// `openSqliteStore` opens the default store: one file, one working process and any number of readers, without a server.
import { existsSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Store } from '../contract/index.ts'
import { TableStore, type Committer, type LaneReadScope } from '../core/store.ts'
import { EMPTY_OUTBOX, type OutboxTable, type Tables } from '../core/tables.ts'
import { GroupCommit } from './group-commit.ts'
import { SqliteEvents } from './events.ts'
import { toSluiceError, number, Statements, text } from './statements.ts'
import { IdentityIndex } from './identities.ts'
import { LaneRunIndex } from './lane-runs.ts'
import { SqliteLanes } from './lanes.ts'
import { SqliteLimits } from './limits.ts'
import { LogSync, Checkpointer } from './write-ahead-log.ts'
import { SqlitePlacements } from './placements.ts'
import { SqliteRecords } from './records.ts'
import { SqliteDeadLetters, SqliteUnrouted, SqliteRuns } from './runs.ts'
import { FileIdentityCheck, FileLock, makeOurs, FileOwner } from './file-lock.ts'
import { checkSchema, ensureWorkView, migrate } from './schema.ts'
import { SqliteDocs, SqliteSmallTables } from './small-tables.ts'

export interface SqliteOptions {
  /** A path, or `:memory:`. */
  readonly file: string
  readonly clock?: Clock
  /** Opens the file for reading while another process works on it. */
  readonly readOnly?: boolean
  /** The maximum size of the file. Beyond it, appends fail with `STORE_FULL`, and stored events still run. */
  readonly maxBytes?: number
}

export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { clock = systemClock, readOnly = false } = options
  const file = resolveLink(options.file)
  const opened: Pick<DatabaseSync, 'close'>[] = []
  const close = (): void => {
    for (const db of opened.toReversed()) db.close()
  }
  try {
    const version = readSchemaVersion(file)
    if (readOnly && version === 0) throw new SluiceError('STORE_MISSING', `No Sluice database exists at ${file} yet.`)
    const lock = readOnly || file === IN_MEMORY ? undefined : new FileLock(file)
    if (lock !== undefined) opened.push(lock)
    if (lock !== undefined) makeOurs(file)
    const db = new DatabaseSync(file, { readOnly })
    opened.push(db)
    if (!readOnly) configureDatabase(db, file)
    const owner = readOnly ? undefined : new FileOwner(db, file)
    const tables = new SqliteTables(db, { maxBytes: options.maxBytes ?? Infinity, readOnly })
    const log = lock === undefined ? undefined : new Checkpointer(db, file)
    const disk = lock === undefined ? undefined : openLogSync(file, clock, lock)
    const commit = new GroupCommit({
      db,
      file,
      readOnly,
      tables,
      begun: () => owner?.assert(),
      onCommitted: () => log?.onCommitted(),
      makeRoom: () => log?.writeBack() ?? false,
      sync: disk === undefined ? undefined : () => disk.sync(),
      close: async () => {
        await log?.close()
        await disk?.close()
        close()
      },
    })
    const commits: Committer = {
      durable: commit.durable,
      write: (work) => commit.write(() => work(tables, clock.now())),
      read: (work, lanes) => commit.read(lanes, () => work(tables, clock.now())),
      readClockAndEpoch: () => commit.readMemory(() => ({ now: clock.now(), routes: tables.routes() })),
      close: () => commit.close(),
    }
    return new TableStore({ commits, clock })
  } catch (error) {
    close()
    throw toSluiceError(error, file)
  }
}

const IN_MEMORY = ':memory:'

/** `openLogSync` uses the real path: a link that changes later, or another working folder, must not lead to another
    file. */
function openLogSync(file: string, clock: Clock, lock: FileLock): Pick<LogSync, 'sync' | 'close'> {
  const path = realpathSync(file)
  const log = new LogSync(path)
  const same = new FileIdentityCheck(path, clock, lock)
  return {
    sync: async () => {
      await log.sync()
      await same.check()
    },
    close: () => log.close(),
  }
}

/** `resolveLink` resolves links, so that every link to a file results in the same path. */
function resolveLink(file: string): string {
  return file !== IN_MEMORY && existsSync(file) ? realpathSync(file) : file
}

const OTHER_PATH = 'Choose another path, or move the existing file away.'

/** `readSchemaVersion` returns the schema version at the path, 0 for none. It only reads, so that a foreign file
    stays unchanged to the last byte. */
function readSchemaVersion(file: string): number {
  if (file === IN_MEMORY || !existsSync(file)) return 0
  const found = statSync(file)
  if (!found.isFile()) throw new SluiceError('STORE_UNWRITABLE', `${file} is not a file.`, undefined, OTHER_PATH)
  if (found.size === 0) return 0
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return checkSchema(db, file)
  } finally {
    db.close()
  }
}

/** SQLite writes each changed page twice: to its log, and later to the file. A page of twice its default halves the number of pages. */
const PAGE_BYTES = 8_192
const CACHE_KB = 4_096

/** `LogSync` syncs a commit before it is acknowledged. With `synchronous = full`, SQLite would also sync, and block
    the event loop. */
function configureDatabase(db: DatabaseSync, file: string): void {
  db.exec(
    `pragma page_size = ${PAGE_BYTES}; pragma journal_mode = wal; pragma synchronous = normal; pragma busy_timeout = 5000`,
  )
  db.exec(`pragma cache_size = -${CACHE_KB}; pragma temp_store = memory`)
  migrate(db, file)
  ensureWorkView(db)
}

/** `draw` counts in memory. The file holds an upper bound of the numbers drawn, so that no number repeats after a crash. */
const COUNTER_BLOCK = 10_000

class SqliteTables implements Tables {
  readonly name: string
  readonly lanes: SqliteLanes
  readonly placements: SqlitePlacements
  readonly events: SqliteEvents
  readonly runs: SqliteRuns
  readonly deadLetters: SqliteDeadLetters
  readonly unrouted: SqliteUnrouted
  readonly outbox: OutboxTable = EMPTY_OUTBOX
  readonly limits: SqliteLimits
  readonly small: SqliteSmallTables
  readonly docs: SqliteDocs
  readonly records: SqliteRecords
  readonly #sql: Statements
  readonly #identities: IdentityIndex
  readonly #laneRuns: LaneRunIndex
  readonly #maxBytes: number
  #counter: number
  #storedCounter: number
  #routes: number

  constructor(db: DatabaseSync, { maxBytes, readOnly }: { readonly maxBytes: number; readonly readOnly: boolean }) {
    const sql = new Statements(db)
    this.#sql = sql
    this.#maxBytes = maxBytes
    this.name = text(this.#readMeta('name'))
    this.#counter = number(this.#readMeta('counter'))
    this.#storedCounter = this.#counter
    this.#routes = number(this.#readMeta('routes'))
    this.placements = new SqlitePlacements(sql)
    this.lanes = new SqliteLanes(sql, this.placements, readOnly)
    this.#identities = new IdentityIndex(sql, readOnly)
    this.events = new SqliteEvents(sql, this.#identities, this.draw)
    this.#laneRuns = new LaneRunIndex(sql, readOnly)
    this.runs = new SqliteRuns(sql, this.name, this.#laneRuns)
    this.deadLetters = new SqliteDeadLetters(sql)
    this.unrouted = new SqliteUnrouted(sql)
    this.limits = new SqliteLimits(sql)
    this.small = new SqliteSmallTables(sql)
    this.docs = new SqliteDocs(sql)
    const laneRuns = readOnly ? undefined : this.#laneRuns
    const { lanes, placements, name } = this
    this.records = new SqliteRecords(sql, { lanes, placements, laneRuns, store: name })
  }

  readonly draw = (): number => {
    this.#counter++
    if (this.#counter > this.#storedCounter) {
      this.#storedCounter = this.#counter + COUNTER_BLOCK
      this.#sql.run(`update meta set value = ? where name = 'counter'`, this.#storedCounter)
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

  hasDeferred(looked: LaneReadScope): boolean {
    return this.lanes.hasDeferred(looked)
  }

  flush(looked: LaneReadScope): void {
    this.lanes.flush(looked)
  }

  /** `beforeCommit` is the last step before the commit. */
  beforeCommit(): void {
    this.lanes.beforeCommit()
    this.#sql.flush()
  }

  /** `afterTransaction` may be called twice for one rollback: the second call reads what the first could not. */
  afterTransaction(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      // This comes first: batched rows belong to the commit that was rolled back, and any read would write them.
      this.#sql.discardBatched()
      // Memory may be ahead of the file.
      this.#storedCounter = this.#counter
      this.#routes = number(this.#readMeta('routes'))
    }
    this.#identities.afterTransaction(how)
    this.#laneRuns.afterTransaction(how)
    this.lanes.afterTransaction(how)
  }

  #readMeta(name: string): string | number | null | Uint8Array {
    return this.#sql.get('select value from meta where name = ?', name)?.[0] ?? null
  }
}
