// Kills the process that works, again and again, while its successor already stands by; at the end all that is left has to
// run. `npm test` does it 30 times, `npm run prove -- kill-engine` a thousand times.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Chance, seedOf } from '../sqlite/kill-load.ts'
import { check } from './check.ts'
import type { EngineCounts } from './counts.ts'
import { Ledger } from './ledger.ts'
import { Life } from './life.ts'
import { ledgerFile, linesOf, now, type Fault } from './load.ts'

export interface LivesOptions {
  /** An empty folder for the file and what goes with it. */
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  readonly fault?: Fault
  /** All processes have one name, as those of a host that is named after itself. */
  readonly named?: boolean
  /** Where compiled modules are kept: most of a short life would otherwise be spent on compiling. */
  readonly compiled?: string
  /** How long a life lasts at most, in ms, once it works. */
  readonly latest?: number
  readonly progress?: (cycle: number) => void
  /** After a death, while nobody works: nobody stands by then. Is given the file and what the dead one wrote. */
  readonly meddle?: (file: string, ledger: string, cycle: number) => void
}

export interface LivesReport {
  readonly counts: EngineCounts
  /** The first offences, in words. */
  readonly complaints: readonly string[]
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
const LATEST_KILL_MS = 700
/** One in ten dies while it opens the file, or soon after. */
const KILLED_AT_START = 0.1
const LATEST_START_MS = 40

export async function livesAndDeaths(options: LivesOptions): Promise<LivesReport> {
  const { folder, cycles, seed, fault = 'none', latest = LATEST_KILL_MS, meddle } = options
  const name = options.named === true ? 'host-1' : ''
  const compiled = options.compiled ?? join(folder, 'compiled')
  const file = join(folder, 'killed.db')
  const ledger = new Ledger()
  const begin = (life: number): Life => {
    // There even if the life is too short for it to write.
    writeFileSync(ledgerFile(folder, life), '')
    return new Life(CHILD, compiled, [
      folder,
      String(seed),
      String(life),
      fault,
      life > cycles ? 'drain' : 'work',
      name,
    ])
  }
  let next = begin(1)
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const life = next
    const chance = new Chance(seedOf(`${seed} kill ${cycle}`))
    const atStart = cycle > 1 && meddle === undefined && chance.happens(KILLED_AT_START)
    if (!atStart) await life.opened
    if (meddle === undefined) next = begin(cycle + 1)
    await setTimeout(chance.next() * (atStart ? LATEST_START_MS : latest))
    const killed = await life.kill()
    meddle?.(file, ledgerFile(folder, cycle), cycle)
    if (meddle !== undefined) next = begin(cycle + 1)
    ledger.hear(cycle, linesOf(ledgerFile(folder, cycle)), killed)
    ledger.complaints.counts.cycles++
    options.progress?.(cycle)
  }
  await next.ended
  ledger.hear(cycles + 1, linesOf(ledgerFile(folder, cycles + 1)), now())
  await check(`sqlite:${file}`, ledger)
  return { counts: ledger.complaints.counts, complaints: ledger.complaints.first }
}
