// One folder for all files of a run: every side writes to the same disk, and one removal deletes everything.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const TRIES = 50
const MILLIS_BETWEEN = 100

/** The folder is removed when the process ends, also by a signal or an error. TMPDIR decides which disk it is on. */
export function makeRunFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  process.once('exit', () => remove(folder))
  return folder
}

/** The server's folder is beside it, because a process of its own first ends the server and then removes its files. */
export function postgresFolder(folder: string): string {
  return `${folder}-postgres`
}

/** Retries the removal, because a process that was interrupted together with this one still writes for a moment. */
function remove(folder: string): void {
  for (let left = TRIES; left > 0 && existsSync(folder); left -= 1) {
    try {
      rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      if (left === 1) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MILLIS_BETWEEN)
    }
  }
}
