// Kills a receiving server again and again while its successor waits; then checks that every webhook that got
// a 2xx is stored. `npm run test:faults` does it 20 times, `npm run prove -- kill-ingest` a thousand times.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openStore, type Store } from '../../src/index.ts'
import { Chance, seedOf } from '../sqlite/kill-load.ts'
import { bodyOf, labelIn, type Fault } from './load.ts'
import { Senders } from './senders.ts'

export interface IngestCounts {
  cycles: number
  /** Webhooks that got a 2xx. */
  acked: number
  /** Webhooks that had no response when the server died, and were sent again to the next one. */
  unanswered: number
  /** Stored webhooks that were sent again and got a 2xx. */
  resent: number
  /** Webhooks that got a 2xx and are not in the store. */
  lost: number
  /** Webhooks that are in the store twice. */
  twice: number
  /** Events with other bytes than were sent, or responses that are not 2xx. */
  wrong: number
}

export function noCounts(): IngestCounts {
  return { cycles: 0, acked: 0, unanswered: 0, resent: 0, lost: 0, twice: 0, wrong: 0 }
}

export interface KillsOptions {
  /** An empty folder. */
  readonly folder: string
  readonly cycles: number
  readonly seed: number
  readonly fault?: Fault
  /** The folder for compiled modules: otherwise, most of a short life would be spent on compiling. */
  readonly compiled?: string
  readonly progress?: (cycle: number) => void
  /** Changes the file when all servers are dead, for tests of the checker. */
  readonly meddle?: (file: string) => void
}

export interface KillsReport {
  readonly counts: IngestCounts
  /** Descriptions of the first violations. */
  readonly complaints: readonly string[]
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
/** A life ends after a random number of responses below this, so that its work does not depend on the machine's speed. */
const MOST_ANSWERS = 200
/** One server in ten is killed before it is known to listen, and another one during its first requests. */
const KILLED_AT_START = 0.1
const KILLED_AT_FIRST = 0.1
const LATEST_START_MS = 60
const RESENT = 0.02
const COMPLAINTS_KEPT = 20
const PAGE = 500

export async function kills(options: KillsOptions): Promise<KillsReport> {
  const { folder, cycles, seed, fault = 'none' } = options
  const file = join(folder, 'killed.db')
  const begin = (): Life => new Life(options.compiled ?? join(folder, 'compiled'), [file, fault])
  const ledger = new Ledger(seed)
  let next = begin()
  for (let cycle = 1; cycle <= cycles; cycle++) {
    const life = next
    const chance = new Chance(seedOf(`${seed} kill ${cycle}`))
    await life.ready
    if (cycle < cycles) next = begin()
    life.begin()
    if (chance.happens(KILLED_AT_START)) {
      await setTimeout(chance.next() * LATEST_START_MS)
      await life.kill()
    } else {
      const senders = new Senders(await life.port, () => ledger.next(cycle), ledger.heard)
      const answers = chance.happens(KILLED_AT_FIRST) ? 0 : 1 + chance.below(MOST_ANSWERS)
      await Promise.race([ledger.answers(answers), senders.all])
      await life.kill()
      await senders.over()
    }
    ledger.counts.cycles++
    options.progress?.(cycle)
  }
  options.meddle?.(file)
  const store = await openStore(`sqlite:${file}`)
  try {
    await ledger.check(store)
  } finally {
    await store.close()
  }
  return { counts: ledger.counts, complaints: ledger.complaints }
}

/** What the senders know. */
class Ledger {
  readonly counts = noCounts()
  readonly complaints: string[] = []
  readonly #acked = new Set<string>()
  readonly #sentAgain: string[] = []
  readonly #known: string[] = []
  readonly #chance: Chance
  #labels = 0
  #left = 0
  #enough = Promise.withResolvers<void>()

  constructor(seed: number) {
    this.#chance = new Chance(seedOf(`${seed} senders`))
  }

  /** Like a careful sender: first repeats webhooks without a response, and repeats some with one. */
  next(cycle: number): string {
    const again = this.#sentAgain.pop()
    if (again !== undefined) return again
    const known = this.#chance.happens(RESENT) ? this.#known[this.#chance.below(this.#known.length)] : undefined
    return known ?? `${cycle}-${this.#labels++}`
  }

  /** Resolves after this many more responses. */
  answers(count: number): Promise<void> {
    this.#left = count
    this.#enough = Promise.withResolvers()
    if (count === 0) this.#enough.resolve()
    return this.#enough.promise
  }

  readonly heard = (label: string, status: number | undefined): void => {
    if (status !== undefined && --this.#left === 0) this.#enough.resolve()
    if (status === undefined) {
      this.counts.unanswered++
      this.#sentAgain.push(label)
    } else if (status !== 202) this.#complain('wrong', `${label} was answered ${status}`)
    else if (this.#acked.has(label)) this.counts.resent++
    else {
      this.counts.acked++
      this.#acked.add(label)
      this.#known.push(label)
    }
  }

  async check(store: Store): Promise<void> {
    const stored = new Set<string>()
    for await (const body of bodiesIn(store)) {
      const label = labelIn(body)
      if (stored.has(label)) this.#complain('twice', label)
      stored.add(label)
      if (!bodyOf(label).equals(body)) this.#complain('wrong', `${label} has other bytes than were sent`)
    }
    for (const label of this.#acked) if (!stored.has(label)) this.#complain('lost', label)
  }

  #complain(offence: 'lost' | 'twice' | 'wrong', what: string): void {
    this.counts[offence]++
    if (this.complaints.length < COMPLAINTS_KEPT) this.complaints.push(`${offence}: ${what}`)
  }
}

async function* bodiesIn(store: Store): AsyncGenerator<Uint8Array> {
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const page: { readonly items: readonly { readonly id: string }[]; readonly next: string | undefined } =
      await store.find({ kind: 'events', filter: { source: 'github' }, cursor, n: PAGE })
    const { bodies } = await store.readBodies({ events: page.items.map(({ id }) => id) })
    for (const body of bodies) if (body !== undefined) yield body
    cursor = page.next
  }
}

/** `Life` is one life of the server. */
class Life {
  readonly #child: ChildProcess
  readonly #exit: Promise<void>
  readonly #ready = Promise.withResolvers<void>()
  readonly #port = Promise.withResolvers<number>()
  #errors = ''
  #killed = false

  constructor(compiled: string, args: readonly string[]) {
    const env = { ...process.env, NODE_COMPILE_CACHE: compiled }
    this.#child = fork(CHILD, args, { env, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#child.on('message', (message) => {
      if (typeof message === 'number') this.#port.resolve(message)
      else this.#ready.resolve()
    })
    this.#exit = once(this.#child, 'close').then(([, signal]: unknown[]) => {
      // With a planted fault, the server kills itself.
      if (this.#killed || signal === 'SIGKILL') return
      const error = new Error(`The server ended by itself: ${this.#errors}`)
      this.#ready.reject(error)
      this.#port.reject(error)
      throw error
    })
    // A caller awaits this promise later.
    for (const one of [this.#exit, this.#ready.promise, this.#port.promise]) one.catch(() => {})
  }

  /** Resolves when all of its code is loaded. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Tells the server that its predecessor is dead. */
  begin(): void {
    this.#child.send('begin')
  }

  /** The port of the server, or why it has ended. */
  get port(): Promise<number> {
    return this.#port.promise
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) await this.#exit
    this.#killed = true
    this.#child.kill('SIGKILL')
    await this.#exit
  }
}
