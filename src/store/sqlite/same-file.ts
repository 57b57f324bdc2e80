// Whether the paths still lead to the files that are open. Who removes or replaces one under a process is told nothing by the system,
// and neither is the process: what it writes goes into a file without a name, and is gone when it ends.
import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock, Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'

/** What is acknowledged between two looks may be lost with the file. */
const LOOK_EVERY: Millis = 250

/** Windows removes no file that is open. */
const CAN_BE_REPLACED = process.platform !== 'win32'

interface Opened {
  readonly path: string
  readonly dev: number
  readonly ino: number
}

export class SameFile {
  readonly #opened: readonly Opened[]
  readonly #clock: Pick<Clock, 'monotonic'>
  #lookedAt: Millis

  /** Of a database that has just been opened and read: its log is there as well. */
  constructor(file: string, clock: Pick<Clock, 'monotonic'>) {
    this.#opened = CAN_BE_REPLACED ? [file, `${file}-wal`].map(openedAt) : []
    this.#clock = clock
    this.#lookedAt = clock.monotonic()
  }

  /** Throws when one is another. Looks now and then, however often it is asked. */
  async check(): Promise<void> {
    const now = this.#clock.monotonic()
    if (now - this.#lookedAt < LOOK_EVERY) return
    this.#lookedAt = now
    await Promise.all(this.#opened.map(mustBeThere))
  }
}

function openedAt(path: string): Opened {
  const { dev, ino } = statSync(path)
  return { path, dev, ino }
}

async function mustBeThere({ path, dev, ino }: Opened): Promise<void> {
  const found = await stat(path).catch(absent)
  if (found === 'unknown' || (found !== 'gone' && found.dev === dev && found.ino === ino)) return
  const became = found === 'gone' ? 'was removed or moved' : 'was replaced'
  throw new SluiceError('STORE_REPLACED', `${path} ${became} while this process worked on it.`)
}

/** A folder that may not be looked into any more says nothing about the file. */
function absent(error: NodeJS.ErrnoException): 'gone' | 'unknown' {
  return error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 'gone' : 'unknown'
}
