// Starts a process that works on one file, kills it at a random moment, looks, and starts the next one; at the end all
// that is left has to run. `npm test` does it 50 times, `npm run prove -- kill-sqlite` a thousand times.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/clock.ts'
import { claimOf, done } from '../../src/store/conformance/vocabulary.ts'
import { openStore } from '../../src/store/open.ts'
import { Chance, FLOW, LEASE, seedOf, type Ended, type Fault, type Line } from './kill-load.ts'
import { Checker } from './kill-check.ts'
import type { KillCounts } from './kill-counts.ts'
import { Ledger } from './kill-ledger.ts'
import { Look } from './kill-look.ts'

export interface KillOptions {
  /** An empty folder for the file and what goes with it. */
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  readonly fault?: Fault
  /** Between two cycles, with the number of the first. */
  readonly between?: (file: string, cycle: number) => void
}

export interface KillReport {
  readonly counts: KillCounts
  /** The first offences, in words. */
  readonly complaints: readonly string[]
}

const CHILD = fileURLToPath(new URL('./kill-child.ts', import.meta.url))
const LATEST_KILL_MS = 60
/** One in twenty dies while it opens the file. */
const KILLED_AT_START = 0.05
const LATEST_START_MS = 80
const SAMPLE = 12
/** More than all that a thousand lives leave behind can take. */
const MOST_TURNS = 5_000
const LOOK_AT_ALL_EVERY = 25

export async function killCycles(options: KillOptions): Promise<KillReport> {
  const { folder, cycles, seed, fault = 'none', between } = options
  const file = join(folder, 'killed.db')
  const ledger = new Ledger()
  const checker = new Checker(ledger)
  const { counts } = ledger.complaints
  await new Life(folder, [file, '', 'warm', fault]).over
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const chance = new Chance(seedOf(`${seed} kill ${cycle}`))
    const sample = ledger.sample((n) => chance.below(n), SAMPLE)
    const life = new Life(folder, [file, String(seed), String(cycle), fault, ...sample])
    await life.kill(chance, (line) => ledger.hear(line))
    counts.cycles++
    inspect(file, (look) => {
      checker.check(look)
      if (cycle % LOOK_AT_ALL_EVERY === 0) checker.checkAll(look)
    })
    between?.(file, cycle)
  }
  await drain(file, ledger)
  inspect(file, (look) => {
    checker.check(look)
    checker.checkAll(look)
    checker.checkDrained()
  })
  return { counts, complaints: ledger.complaints.first }
}

function inspect(file: string, act: (look: Look) => void): void {
  const look = new Look(file)
  try {
    act(look)
  } finally {
    look.close()
  }
}

/** One life of the process. */
class Life {
  readonly #child
  readonly #lines
  /** Its end, when it ends by itself. */
  readonly over: Promise<void>
  #errors = ''

  constructor(folder: string, args: readonly string[]) {
    // Compiled modules are kept: most of a short life would otherwise be spent on compiling.
    const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
    this.#child = spawn(process.execPath, [CHILD, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#lines = createInterface({ input: this.#child.stdout })
    this.over = once(this.#child, 'close').then(([code, signal]: unknown[]) => {
      if (code === 0 || signal === 'SIGKILL') return
      throw new Error(`The process ended by itself (${String(code ?? signal)}): ${this.#errors}`)
    })
  }

  /** Lets it work for a random time. What it wrote before it died is heard, to the last whole line. */
  async kill(chance: Chance, hear: (line: Line) => void): Promise<void> {
    const kill = (): void => void this.#child.kill('SIGKILL')
    const atStart = chance.happens(KILLED_AT_START)
    const delay = chance.next() * (atStart ? LATEST_START_MS : LATEST_KILL_MS)
    let timer = atStart ? setTimeout(kill, delay) : undefined
    this.#lines.on('line', (text) => {
      const line = parsed(text)
      if (line === undefined) return
      hear(line)
      if (line.kind === 'appended') timer ??= setTimeout(kill, delay)
    })
    await Promise.all([this.over, once(this.#lines, 'close')])
    clearTimeout(timer)
  }
}

/** The last line may be cut off: then it was not received. */
function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line
  } catch {
    return undefined
  }
}

/** All that is left runs, here: by a clock that is ahead, so that no window and no lease has to be waited for. */
async function drain(file: string, ledger: Ledger): Promise<void> {
  let ahead = 0
  const store = await openStore(`sqlite:${file}`, { clock: { ...systemClock, now: () => Date.now() + ahead } })
  const claim = [claimOf({ flow: FLOW, lease: 60_000 })]
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  let ends: readonly (Ended & { readonly token: number })[] = []
  for (let request = 1; ; request++) {
    // A lane that never empties is an offence too, not a reason to wait for ever.
    if (request > MOST_TURNS) {
      ledger.complaints.add('wrong', `after ${MOST_TURNS} turns there is still something to do`)
      break
    }
    ledger.hear({ kind: 'settling', n: -request, ends })
    const settle = ends.map(({ lane, token }) => ({ ...end, lane, token }))
    const call = { process: 'drain', request, routes: 1, settle, claim, budget: 0 }
    const { settled, claimed, crashed, heads } = await store.turn(call)
    ledger.hear({ kind: 'settled', n: -request, answers: settled })
    ends = claimed.map(({ run, lane, token, tries, lapses, events: batch }) => {
      const events = batch.map((event) => event.id)
      ledger.hear({ kind: 'claimed', runs: [{ run, lane, token, tries, lapses, events }], crashed: [] })
      return { run, lane, token, kind: 'done', events, retry: [], dead: [], publish: [] }
    })
    ledger.hear({ kind: 'claimed', runs: [], crashed: crashed.map(({ run }) => run) })
    if (claimed.length === 0 && crashed.length === 0) {
      if (heads[0]?.due === undefined) break
      ahead += LEASE
    }
  }
  await store.close()
}
