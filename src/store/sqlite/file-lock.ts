// Three guards let one process work on a file: `FileLock` keeps other processes out, `FileOwner` stops a store that was
// taken over all the same, and `FileIdentityCheck` notices that the file was removed or replaced.
import { closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { SluiceError } from '../../errors.ts'
import { toSluiceError } from './statements.ts'
import { stat } from 'node:fs/promises'
import type { Clock, Millis } from '../../clock.ts'
import { randomUUID } from 'node:crypto'

/** What is acknowledged between two checks may be lost with the file. */
const CHECK_INTERVAL: Millis = 250

/** Windows does not remove a file that is open. */
const CAN_BE_REPLACED = process.platform !== 'win32'

/** `FileIdentity` identifies the file that was at a path. */
interface FileIdentity {
  readonly path: string
  readonly dev: number
  readonly ino: number
}

/** `FileIdentityCheck` verifies that the paths still lead to the open files. The system does not report that a file was
    removed or replaced: the process would go on writing to a file without a name, and lose that data when it ends. */
export class FileIdentityCheck {
  readonly #opened: readonly FileIdentity[]
  readonly #clock: Clock
  readonly #lock: FileLock
  #checkedAt: Millis

  /** The database must have been opened and read, so that its log and the log's index exist. */
  constructor(file: string, clock: Clock, lock: FileLock) {
    this.#opened = [file, `${file}-wal`, `${file}-shm`].map(identityOf)
    this.#clock = clock
    this.#lock = lock
    this.#checkedAt = clock.monotonic()
  }

  /** `check` throws if a file is gone or replaced, and checks the lock. It checks at most once per interval, however
      often it is called. */
  async check(): Promise<void> {
    const now = this.#clock.monotonic()
    if (!CAN_BE_REPLACED || now - this.#checkedAt < CHECK_INTERVAL) return
    this.#checkedAt = now
    await Promise.all(this.#opened.map(assertUnchanged))
    await this.#lock.check()
  }
}

function identityOf(path: string): FileIdentity {
  const { dev, ino } = statSync(path)
  return { path, dev, ino }
}

/** Compares the file at the path with the recorded one. An unreadable folder counts as `same`: it proves
    nothing about the file. */
async function lookAgain({ path, dev, ino }: FileIdentity): Promise<'same' | 'gone' | 'replaced'> {
  try {
    const found = await stat(path)
    return found.dev === dev && found.ino === ino ? 'same' : 'replaced'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'gone' : 'same'
  }
}

async function assertUnchanged(opened: FileIdentity): Promise<void> {
  const found = await lookAgain(opened)
  if (found === 'same') return
  const became = found === 'gone' ? 'was removed or moved' : 'was replaced'
  throw new SluiceError('STORE_REPLACED', `${opened.path} ${became} while this process worked on it.`)
}

const SUFFIX = '-lock'

/** `FileLock` holds `<file>-lock`. The system frees the lock when the process dies, however it dies. If the lock file was
    removed, `check` creates and locks it again. */
export class FileLock {
  /** The resolved path: a link may lead elsewhere later. */
  readonly #file: string
  #db: DatabaseSync
  #identity: FileIdentity

  /** Throws `STORE_IN_USE` if another process works on the file. */
  constructor(file: string) {
    this.#db = lockFile(file)
    this.#file = join(realpathSync(dirname(file)), basename(file))
    this.#identity = lockedAt(this.#file)
  }

  /** `check` takes the lock again if its file was removed or replaced. A process that took the lock meanwhile must
      still take over the file, see `FileOwner`. */
  async check(): Promise<void> {
    if ((await lookAgain(this.#identity)) === 'same') return
    try {
      const again = lockFile(this.#file)
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

function lockFile(file: string): DatabaseSync {
  makeOurs(`${file}${SUFFIX}`)
  const db = new DatabaseSync(`${file}${SUFFIX}`)
  try {
    db.exec('pragma locking_mode = exclusive; pragma journal_mode = off; begin exclusive')
    return db
  } catch (error) {
    db.close()
    const found = toSluiceError(error, file)
    if (found.code !== 'STORE_IN_USE') throw found
    throw new SluiceError('STORE_IN_USE', `Another process, or another app in this process, works on ${file}.`, error)
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

/** `FileOwner` records in the file which store may write it. Anybody can remove the lock beside the file, so each commit
    checks inside its transaction that this store still owns the file: a store that was taken over writes nothing. */
export class FileOwner {
  readonly #file: string
  readonly #name = randomUUID()
  readonly #owner: StatementSync

  /** The constructor takes over the file. No earlier owner can change what is read after this. */
  constructor(db: DatabaseSync, file: string) {
    this.#file = file
    this.#owner = db.prepare(`select value from meta where name = 'owner'`)
    db.prepare(`insert or replace into meta (name, value) values ('owner', ?)`).run(this.#name)
  }

  /** `assert` throws if another store has taken over the file. Call it inside the transaction that writes. */
  assert(): void {
    if (this.#owner.get()?.['value'] === this.#name) return
    const why = `its lock, ${this.#file}-lock, was removed or does not hold`
    throw new SluiceError('STORE_TAKEN', `Another process has taken over ${this.#file}: ${why}.`)
  }
}
