// One folder for all files of a run: every side writes to the same disk, and one removal takes everything along.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const TRIES = 50
const MILLIS_BETWEEN = 100

/** Removed when the process ends, also by a signal or an error. TMPDIR decides on which disk it is. */
export function makeRunFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  process.once('exit', () => remove(folder))
  return folder
}

/** Beside it, because the server is ended and its files are removed by a process of its own, in this order. */
export function postgresFolder(folder: string): string {
  return `${folder}-postgres`
}

/** Again and again, because a process interrupted together with this one goes on writing for a moment. */
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
