// `FileIdentityCheck` verifies that the paths still lead to the open files. The system does not report that a file was
// removed or replaced: the process would go on writing to a file without a name, and lose that data when it ends.
import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock, Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { FileLock } from './file-lock.ts'

/** What is acknowledged between two checks may be lost with the file. */
const CHECK_INTERVAL: Millis = 250

/** Windows does not remove a file that is open. */
const CAN_BE_REPLACED = process.platform !== 'win32'

/** `FileIdentity` identifies the file that was at a path. */
export interface FileIdentity {
  readonly path: string
  readonly dev: number
  readonly ino: number
}

export class FileIdentityCheck {
  readonly #opened: readonly FileIdentity[]
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #lock: Pick<FileLock, 'check'>
  #checkedAt: Millis

  /** The database must have been opened and read, so that its log and the log's index exist. */
  constructor(file: string, clock: Pick<Clock, 'monotonic'>, lock: Pick<FileLock, 'check'>) {
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

export function identityOf(path: string): FileIdentity {
  const { dev, ino } = statSync(path)
  return { path, dev, ino }
}

/** `lookAgain` compares the file at the path with the recorded one. An unreadable folder counts as `same`: it proves
    nothing about the file. */
export async function lookAgain({ path, dev, ino }: FileIdentity): Promise<'same' | 'gone' | 'replaced'> {
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
