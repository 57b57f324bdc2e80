// Kills the working process again and again while its successor waits. At the end, everything that is left must run.
// `npm run test:faults` does it 30 times, `npm run prove -- kill-engine` a thousand times.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Chance, seedOf } from '../sqlite/kill-load.ts'
import { check } from './check.ts'
import type { EngineCounts } from './counts.ts'
import { Ledger } from './ledger.ts'
import { Life } from './life.ts'
import { ledgerFile, linesOf, now } from './load.ts'

export interface LivesOptions {
  /** An empty folder for the file and the logs. */
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  /** Gives all processes one name, as on a host whose processes are named after it. */
  readonly named?: boolean
  /** The folder for compiled modules: otherwise, most of a short life would be spent on compiling. */
  readonly compiled?: string
  readonly progress?: (cycle: number) => void
}

export interface LivesReport {
  readonly counts: EngineCounts
  /** Descriptions of the first violations. */
  readonly complaints: readonly string[]
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
/** A life ends after a random number of lines below this, so that its work does not depend on the machine's speed. */
const MOST_LINES = 400
/** One in ten lives is killed while it opens the file, or soon after. */
const KILLED_AT_START = 0.1
const LATEST_START_MS = 40

export async function livesAndDeaths(options: LivesOptions): Promise<LivesReport> {
  const { folder, cycles, seed } = options
  const name = options.named === true ? 'host-1' : ''
  const compiled = options.compiled ?? join(folder, 'compiled')
  const file = join(folder, 'killed.db')
  const ledger = new Ledger()
  const chanceOf = (life: number): Chance => new Chance(seedOf(`${seed} kill ${life}`))
  const begin = (life: number): Life => {
    // The log file must exist even if the life is too short to write to it.
    writeFileSync(ledgerFile(folder, life), '')
    const lines = life > cycles ? 0 : 1 + chanceOf(life).below(MOST_LINES)
    return new Life(CHILD, compiled, [folder, String(seed), String(life), String(lines), name])
  }
  let next = begin(1)
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const life = next
    const chance = chanceOf(-cycle)
    const atStart = cycle > 1 && chance.happens(KILLED_AT_START)
    if (!atStart) await life.opened
    const enough = life.said()
    // A life that is killed at its start may never send this.
    enough.catch(() => {})
    next = begin(cycle + 1)
    if (atStart) await setTimeout(chance.next() * LATEST_START_MS)
    else await enough
    const killed = await life.kill()
    ledger.hear(cycle, linesOf(ledgerFile(folder, cycle)), killed)
    ledger.complaints.counts.cycles++
    options.progress?.(cycle)
  }
  await next.ended
  ledger.hear(cycles + 1, linesOf(ledgerFile(folder, cycles + 1)), now())
  await check(`sqlite:${file}`, ledger)
  return { counts: ledger.complaints.counts, complaints: ledger.complaints.first }
}
