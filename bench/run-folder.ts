// One folder for all files of a run: every side writes to the same disk, and one removal takes everything along.
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const TRIES = 50
const MILLIS_BETWEEN = 100

/** Removed when the process ends, also by a signal or an error. TMPDIR decides on which disk it is. */
export function makeRunFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  // Started as root, PostgreSQL runs as a user of its own, who has to get through to its part of the folder.
  chmodSync(folder, 0o755)
  process.once('exit', () => remove(folder))
  return folder
}

/** Again and again, because a process interrupted together with this one (initdb) goes on writing for a moment. */
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
