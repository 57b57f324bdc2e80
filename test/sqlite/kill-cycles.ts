// Starts a process that works on one file, kills it after a random number of the lines that it logs, checks the file,
// and starts the next one. At the end, everything that is left must run. `npm run test:faults` does it 50 times,
// `npm run prove -- kill-sqlite` a thousand times.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Chance, seedOf, type Line } from './kill-load.ts'
import { Checker } from './kill-check.ts'
import type { KillCounts } from './kill-counts.ts'
import { drain } from './kill-drain.ts'
import { Ledger } from './kill-ledger.ts'
import { inspect } from './kill-read.ts'

export interface KillOptions {
  /** An empty folder for the file and the logs. */
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  /** Called after each cycle with its number. */
  readonly progress?: (cycle: number) => void
}

export interface KillReport {
  readonly counts: KillCounts
  /** Descriptions of the first violations. */
  readonly complaints: readonly string[]
}

const CHILD = fileURLToPath(new URL('./kill-child.ts', import.meta.url))
/** A life ends after at most this many lines; in about 60 lines, it appends and settles hundreds of events. */
const MOST_LINES = 120
/** One life in twenty is killed while it opens the file. */
const KILLED_AT_START = 0.05
const LATEST_START_MS = 80
const SAMPLE = 12
const LOOK_AT_ALL_EVERY = 25

export async function killCycles(options: KillOptions): Promise<KillReport> {
  const { folder, cycles, seed, progress } = options
  const file = join(folder, 'killed.db')
  const ledger = new Ledger()
  const checker = new Checker(ledger)
  const { counts } = ledger.complaints
  await new Life(folder, [file, '', 'warm']).over
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const chance = new Chance(seedOf(`${seed} kill ${cycle}`))
    const sample = ledger.sample((n) => chance.below(n), SAMPLE)
    const life = new Life(folder, [file, String(seed), String(cycle), ...sample])
    await life.kill(chance, (line) => ledger.hear(line))
    counts.cycles++
    inspect(file, (look) => {
      checker.check(look)
      if (cycle % LOOK_AT_ALL_EVERY === 0) checker.checkAll(look)
    })
    progress?.(cycle)
  }
  await drain(file, ledger)
  inspect(file, (look) => {
    checker.check(look)
    checker.checkAll(look)
    checker.checkDrained()
  })
  return { counts, complaints: ledger.complaints.first }
}

/** One life of the process. */
class Life {
  readonly #child
  readonly #lines
  /** Resolves when the process exits without a kill. */
  readonly over: Promise<void>
  #errors = ''

  constructor(folder: string, args: readonly string[]) {
    // Compiled modules are cached: otherwise, most of a short life would be spent on compiling.
    const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
    this.#child = spawn(process.execPath, [CHILD, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#lines = createInterface({ input: this.#child.stdout })
    this.over = once(this.#child, 'close').then(([code, signal]: unknown[]) => {
      if (code === 0 || signal === 'SIGKILL') return
      throw new Error(`The process ended by itself (${String(code ?? signal)}): ${this.#errors}`)
    })
  }

  /**
   * `kill` first lets the process write a random number of lines, so that its work does not depend on the
   * machine's speed. Everything that it wrote before it died is read, to the last complete line.
   */
  async kill(chance: Chance, hear: (line: Line) => void): Promise<void> {
    const kill = (): void => void this.#child.kill('SIGKILL')
    const atStart = chance.happens(KILLED_AT_START)
    const timer = atStart ? setTimeout(kill, chance.next() * LATEST_START_MS) : undefined
    let left = 1 + chance.below(MOST_LINES)
    let hasAppended = false
    this.#lines.on('line', (text) => {
      const line = parsed(text)
      if (line === undefined) return
      hear(line)
      hasAppended ||= line.kind === 'appended'
      if (hasAppended && --left === 0) kill()
    })
    await Promise.all([this.over, once(this.#lines, 'close')])
    clearTimeout(timer)
  }
}

/** The last line may be cut off, and then counts as not received. */
function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line
  } catch {
    return undefined
  }
}
