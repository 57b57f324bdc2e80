// The log of commits beside the file: `LogSync` syncs it to the disk, `Checkpointer` writes it back into the file. Both leave
// the event loop free: the disk is as slow as it is.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { close, fdatasync, openSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { SluiceError } from '../../errors.ts'

const syncFile = promisify(fdatasync)
const closeFile = promisify(close)

/** `LogSync` syncs the log on a system thread. A write resolves only after the sync: a commit alone has only reached the
    memory of the system. */
export class LogSync {
  readonly #log: string
  #opened: number | undefined

  /** The database at this path must have been written to. */
  constructor(file: string) {
    this.#log = `${file}-wal`
  }

  async sync(): Promise<void> {
    try {
      // The log stays the same file while the database is open: SQLite restarts it in place and never replaces it.
      this.#opened ??= openSync(this.#log, 'r+')
      await syncFile(this.#opened)
    } catch (error) {
      throw new SluiceError('STORE_SYNC_FAILED', `The disk did not sync ${this.#log}.`, error)
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    if (opened !== undefined) await closeFile(opened)
  }
}

/** The log length that starts a checkpoint. A page that changes often is then written back once, not with every
    commit. */
const CHECKPOINT_PAGES = 8_192
/** If the thread fails or does not keep up, the main thread checkpoints at this multiple of the length. */
const MAX_LOG_FACTOR = 4
/** The share of the free space at which a log shorter than `CHECKPOINT_PAGES` is written back too. Writing back makes the
    file grow by up to the length of the log, so the log may never need more than what is free. */
const LOG_SHARE = 1 / 8
/** The log may be this long on any disk. The free space is read again whenever the log has grown by as much. */
const MIN_LOG_PAGES = 32
/** The thread needs almost no memory, and would otherwise use as much as it is allowed. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, stackSizeMb: 1 }
/** The first SQLite version that returns the length of the log without writing it back. */
const NOOP_CHECKPOINT_SINCE = [3, 51] as const

/** `Checkpointer` lets a thread write the log back: 64 MB would block the event loop for 50 ms. The main thread only writes
    back what was committed meanwhile. Nothing depends on it: the log holds what is not written back. */
export class Checkpointer {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #readFreeBytes: () => number
  readonly #length: StatementSync
  readonly #pageBytes: number
  #readAt = -Infinity
  #maxPages = CHECKPOINT_PAGES
  #thread: Worker | undefined
  #ended = Promise.resolve()
  #busy = false

  constructor(db: DatabaseSync, file: string, readFreeBytes: () => number = () => readFreeSpace(file)) {
    this.#db = db
    this.#file = file
    this.#readFreeBytes = readFreeBytes
    this.#length = db.prepare(supportsNoopCheckpoint() ? 'pragma wal_checkpoint(noop)' : 'select 0 as log')
    this.#pageBytes = Number(db.prepare('pragma page_size').get()?.['page_size'])
    this.#setLimits()
  }

  /** `onCommitted` must be called after each commit. */
  onCommitted(): void {
    const length = Number(this.#length.get()?.['log'])
    if (Math.abs(length - this.#readAt) >= MIN_LOG_PAGES) this.#readLimit(length)
    if (this.#busy || length < this.#maxPages) return
    this.#busy = true
    this.#thread ??= this.#start()
    this.#thread.postMessage('write back')
  }

  /** `writeBack` writes back what it can at once, e.g. after a commit did not fit on the disk. It returns whether the next
      commit can start the log again, which takes no further space. */
  writeBack(): boolean {
    try {
      const { busy, log, checkpointed } = this.#db.prepare('pragma wal_checkpoint(passive)').get() ?? {}
      return busy === 0 && Number(log) > 0 && log === checkpointed
    } catch {
      // The file cannot grow either.
      return false
    }
  }

  /** Call `close` before the database is closed: the last connection to close removes the log. */
  async close(): Promise<void> {
    this.#busy = true
    this.#thread?.ref()
    this.#thread?.postMessage('close')
    await this.#ended
  }

  #readLimit(length: number): void {
    this.#readAt = length
    const share = Math.floor((this.#readFreeBytes() * LOG_SHARE) / this.#pageBytes)
    const most = Math.min(CHECKPOINT_PAGES, Math.max(MIN_LOG_PAGES, share))
    if (most === this.#maxPages) return
    this.#maxPages = most
    this.#setLimits()
  }

  /** `#setLimits` lets SQLite checkpoint by itself if the thread does not, and shorten a longer log when it starts it
      again. */
  #setLimits(): void {
    const most = MAX_LOG_FACTOR * this.#maxPages
    this.#db.exec(`pragma wal_autocheckpoint = ${supportsNoopCheckpoint() ? most : CHECKPOINT_PAGES}`)
    this.#db.exec(`pragma journal_size_limit = ${most * this.#pageBytes}`)
  }

  #start(): Worker {
    const program = new URL(
      `write-back-thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`,
      import.meta.url,
    )
    const thread = new Worker(program, { workerData: this.#file, env: {}, resourceLimits: THREAD_LIMITS })
    thread.unref()
    this.#ended = new Promise((resolve) => thread.once('exit', () => resolve()))
    thread.on('message', () => {
      this.#checkpointRest()
      this.#busy = false
    })
    // `#busy` stays true: from now on, the main thread checkpoints, less often.
    thread.on('error', () => {})
    return thread
  }

  /** `#checkpointRest` writes back the rest. When the whole log is written back, the next commit restarts it. */
  #checkpointRest(): void {
    if (this.#db.isOpen) this.writeBack()
  }
}

function readFreeSpace(file: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(file))
    return bavail * bsize
  } catch {
    // The folder is gone or does not report its size; `FileIdentityCheck` notices the former.
    return Infinity
  }
}

function supportsNoopCheckpoint(): boolean {
  const [major = 0, minor = 0] = (process.versions['sqlite'] ?? '').split('.').map(Number)
  return major > NOOP_CHECKPOINT_SINCE[0] || (major === NOOP_CHECKPOINT_SINCE[0] && minor >= NOOP_CHECKPOINT_SINCE[1])
}
