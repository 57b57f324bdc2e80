// Ends one PostgreSQL and removes its folder when the pipe from its starter closes: because of stop(), or because the starter
// is gone, possibly by a signal that leaves no time to clean up. It is a process of its own, which Ctrl-C does not reach.
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
// Each line is the id of the running server process; an empty line means that none runs.
let running = 0
for await (const line of createInterface({ input: process.stdin })) running = Number(line)
if (running !== 0) {
  // The server is stopped at once, because its data is not needed any more.
  send(running, 'SIGQUIT')
  if (!(await isGone(running))) send(running, 'SIGKILL')
}
// Processes that initdb started end by themselves, soon after initdb.
await isGone(lockedBy() ?? 0)
if (lockedBy() !== undefined) {
  // A killed server leaves shared memory that outlives its folder. The next start on the same data removes it, and this is the
  // shortest start: single-user, and without a sync (-F).
  spawnSync(postgres, ['--single', '-F', '-D', data, 'postgres'], { ...account, cwd: folder, input: '', stdio: 'pipe' })
}
await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: MILLIS_BETWEEN })

/** The process is not our child, so there is no event to await. Returns false if it takes too long. */
async function isGone(pid: number): Promise<boolean> {
  const deadline = performance.now() + LONGEST_END_MILLIS
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false
    await sleep(MILLIS_BETWEEN)
  }
  return true
}

/**
 * The id of the process that works on the data, or did when it was killed. A single-user server writes its id with a minus
 * sign.
 */
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
  // Zero would be our own process group.
  if (pid === 0 || !send(pid, 0)) return false
  try {
    // The process has ended, but its parent has not collected it: in a container there may be no parent that does.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}
