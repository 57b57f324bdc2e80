// `FileLock` holds `<file>-lock` for the one process that works on the file. The system frees the lock when the process
// dies, however it dies. If the lock file was removed, `check` creates and locks it again, so that it keeps other
// processes out.
import { closeSync, existsSync, openSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'
import { toSluiceError } from './errors.ts'
import { identityOf, lookAgain, type FileIdentity } from './file-identity.ts'

const SUFFIX = '-lock'

export class FileLock {
  /** The resolved path: a link may lead elsewhere later. */
  readonly #file: string
  #db: DatabaseSync
  #identity: FileIdentity

  /** Throws `STORE_IN_USE` if another process works on the file. */
  constructor(file: string) {
    this.#db = lock(file)
    this.#file = join(realpathSync(dirname(file)), basename(file))
    this.#identity = lockedAt(this.#file)
  }

  /** `check` takes the lock again if its file was removed or replaced. A process that took the lock meanwhile must
      still take over the file, see `FileOwner`. */
  async check(): Promise<void> {
    if ((await lookAgain(this.#identity)) === 'same') return
    try {
      const again = lock(this.#file)
      this.#db.close()
      this.#db = again
      this.#identity = lockedAt(this.#file)
    } catch {
      // The next check tries again.
    }
  }

  close(): void {
    this.#db.close()
  }
}

/** `lockedAt` identifies the lock file. If it was already removed, the result matches no file, and the next check
    takes the lock again. */
function lockedAt(file: string): FileIdentity {
  const path = `${file}${SUFFIX}`
  try {
    return identityOf(path)
  } catch {
    return { path, dev: -1, ino: -1 }
  }
}

function lock(file: string): DatabaseSync {
  makeOurs(`${file}${SUFFIX}`)
  const db = new DatabaseSync(`${file}${SUFFIX}`)
  try {
    db.exec('pragma locking_mode = exclusive; pragma journal_mode = off; begin exclusive')
    return db
  } catch (error) {
    db.close()
    const found = toSluiceError(error, file)
    if (found.code !== 'STORE_IN_USE') throw found
    throw new SluiceError('STORE_IN_USE', `Another process works on ${file}.`, error)
  }
}

/** `makeOurs` creates the file readable by its owner only: it holds what strangers sent. The log and its index
    inherit its mode. */
export function makeOurs(file: string): void {
  if (existsSync(file)) return
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch {
    // SQLite reports why the file cannot be created when it opens it.
  }
}
