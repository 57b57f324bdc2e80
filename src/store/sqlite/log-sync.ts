// `LogSync` syncs the commit log to the disk on a system thread, so that the event loop goes on. A write resolves only
// after the sync: a commit alone has only reached the memory of the system.
import { close, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { SluiceError } from '../../errors.ts'

const syncFile = promisify(fdatasync)
const closeFile = promisify(close)

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
