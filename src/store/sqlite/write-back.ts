// The log of commits is written back into the file by a thread of its own: 64 MB of it would stop the event loop for 50 ms.
// Only what is committed meanwhile is left for this thread. Nothing depends on it: what is not written back is in the log.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'

/** A page that changes often is written back once in so many, not with every commit. */
const LOG_PAGES = 8_192
/** Should the thread not keep up, or not be there, this thread does it all. */
const LOG_PAGES_MAX = 4 * LOG_PAGES
/** It needs next to nothing, and takes what it is allowed. */
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, stackSizeMb: 1 }
/** The first SQLite that tells how long the log is without writing it back. */
const TELLS_LENGTH = [3, 51] as const

export class WriteBack {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #length: StatementSync
  #thread: Worker | undefined
  #ended = Promise.resolve()
  #busy = false

  constructor(db: DatabaseSync, file: string) {
    this.#db = db
    this.#file = file
    db.exec(`pragma wal_autocheckpoint = ${tellsLength() ? LOG_PAGES_MAX : LOG_PAGES}`)
    this.#length = db.prepare(tellsLength() ? 'pragma wal_checkpoint(noop)' : 'select 0 as log')
  }

  /** To be told after each commit. */
  committed(): void {
    if (this.#busy || Number(this.#length.get()?.['log']) < LOG_PAGES) return
    this.#busy = true
    this.#thread ??= this.#start()
    this.#thread.postMessage('write back')
  }

  /** Before the database is closed: the last to close it puts the log away. */
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
    const thread = new Worker(program, { workerData: this.#file, env: {}, resourceLimits: THREAD_MEMORY })
    thread.unref()
    this.#ended = new Promise((resolve) => thread.once('exit', () => resolve()))
    thread.on('message', () => {
      this.#rest()
      this.#busy = false
    })
    // It stays busy: from now on this thread does it, less often.
    thread.on('error', () => {})
    return thread
  }

  /** When all of the log is written back, the next commit begins it anew. */
  #rest(): void {
    if (this.#db.isOpen) this.#db.exec('pragma wal_checkpoint(passive)')
  }
}

function tellsLength(): boolean {
  const [major = 0, minor = 0] = (process.versions['sqlite'] ?? '').split('.').map(Number)
  return major > TELLS_LENGTH[0] || (major === TELLS_LENGTH[0] && minor >= TELLS_LENGTH[1])
}
