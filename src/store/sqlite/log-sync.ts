// Has the log of commits put on the disk by a thread of the system's, so that the event loop goes on meanwhile. Whoever waits for
// a commit is answered after this, and not before: a commit alone has only reached the system's memory.
import { close, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { SluiceError } from '../../errors.ts'

const syncFile = promisify(fdatasync)
const closeFile = promisify(close)

export class LogSync {
  readonly #log: string
  #opened: number | undefined

  /** Of the database at this path, which has been written to. */
  constructor(file: string) {
    this.#log = `${file}-wal`
  }

  async sync(): Promise<void> {
    try {
      // The same file as long as the database is open: it is begun anew in its place, never replaced.
      this.#opened ??= openSync(this.#log, 'r+')
      await syncFile(this.#opened)
    } catch (error) {
      throw new SluiceError('STORE_UNSYNCED', `The disk did not take ${this.#log}.`, error)
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    if (opened !== undefined) await closeFile(opened)
  }
}
