// The log of commits beside the file: `LogSync` syncs it to the disk, `Checkpointer` writes it back into the file. Both leave
// the event loop free: the disk is as slow as it is.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { close, fdatasync, openSync } from 'node:fs'
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
/** If the thread fails or does not keep up, the main thread checkpoints at this length. */
const MAX_LOG_PAGES = 4 * CHECKPOINT_PAGES
/** The thread needs almost no memory, and would otherwise use as much as it is allowed. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, stackSizeMb: 1 }
/** The first SQLite version that returns the length of the log without writing it back. */
const NOOP_CHECKPOINT_SINCE = [3, 51] as const

/** `Checkpointer` lets a thread write the log back: 64 MB would block the event loop for 50 ms. The main thread only writes
    back what was committed meanwhile. Nothing depends on it: the log holds what is not written back. */
export class Checkpointer {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #length: StatementSync
  #thread: Worker | undefined
  #ended = Promise.resolve()
  #busy = false

  constructor(db: DatabaseSync, file: string) {
    this.#db = db
    this.#file = file
    db.exec(`pragma wal_autocheckpoint = ${supportsNoopCheckpoint() ? MAX_LOG_PAGES : CHECKPOINT_PAGES}`)
    this.#length = db.prepare(supportsNoopCheckpoint() ? 'pragma wal_checkpoint(noop)' : 'select 0 as log')
  }

  /** `onCommitted` must be called after each commit. */
  onCommitted(): void {
    if (this.#busy || Number(this.#length.get()?.['log']) < CHECKPOINT_PAGES) return
    this.#busy = true
    this.#thread ??= this.#start()
    this.#thread.postMessage('write back')
  }

  /** Call `close` before the database is closed: the last connection to close removes the log. */
  async close(): Promise<void> {
    this.#busy = true
    this.#thread?.ref()
    this.#thread?.postMessage('close')
    await this.#ended
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
    if (this.#db.isOpen) this.#db.exec('pragma wal_checkpoint(passive)')
  }
}

function supportsNoopCheckpoint(): boolean {
  const [major = 0, minor = 0] = (process.versions['sqlite'] ?? '').split('.').map(Number)
  return major > NOOP_CHECKPOINT_SINCE[0] || (major === NOOP_CHECKPOINT_SINCE[0] && minor >= NOOP_CHECKPOINT_SINCE[1])
}
