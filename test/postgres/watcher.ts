// Ends one PostgreSQL and removes its folder when the pipe from whoever started it closes: by stop(), or because that
// process is gone, be it by a signal that leaves it no time to clean up. A process of its own, out of reach of Ctrl-C.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Watched {
  readonly folder: string
  readonly data: string
  readonly postgres: string
  readonly account: { readonly uid?: number; readonly gid?: number }
}

const LONGEST_END_MILLIS = 10_000
const MILLIS_BETWEEN = 10

const { folder, data, postgres, account } = JSON.parse(process.argv[2] ?? '') as Watched

process.stdout.write('watching\n')
// Each line names the process that runs now; an empty one says that none does.
let running = 0
for await (const line of createInterface({ input: process.stdin })) running = Number(line)
if (running !== 0) {
  // At once: nobody will read this data again.
  send(running, 'SIGQUIT')
  if (!(await isGone(running))) send(running, 'SIGKILL')
}
// What initdb started ends by itself, soon after initdb.
await isGone(lockedBy() ?? 0)
if (lockedBy() !== undefined) {
  // A server that was killed leaves shared memory behind, which outlives its folder. The next start on the same data
  // takes it away, and this is the shortest one: alone, and without a sync (-F).
  spawnSync(postgres, ['--single', '-F', '-D', data, 'postgres'], { ...account, cwd: folder, input: '', stdio: 'pipe' })
}
await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: MILLIS_BETWEEN })

/** Not one of our children, so there is no event to wait for. False: it takes too long. */
async function isGone(pid: number): Promise<boolean> {
  const deadline = performance.now() + LONGEST_END_MILLIS
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false
    await sleep(MILLIS_BETWEEN)
  }
  return true
}

/** The process that is at work on the data, or was when it was killed. A server that serves nobody has a minus. */
function lockedBy(): number | undefined {
  try {
    return Math.abs(Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10))
  } catch {
    return undefined
  }
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  // Zero would be our own group.
  if (pid === 0 || !send(pid, 0)) return false
  try {
    // Ended, and not collected by its parent: in a container there may be nobody who does.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}
