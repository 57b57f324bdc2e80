// Runs four workers and two receivers on one server under load, PostgreSQL or Redis. Workers are killed and stopped past their leases, the
// server is killed, and replies of commits are cut off. At the end everything left must run, and the ledger judges. `npm run
// test:faults` runs it in short, `npm run prove -- postgres-processes` at length.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { check } from '../../engine-kill/check.ts'
import { noCounts as noEngineCounts, type EngineCounts } from '../../engine-kill/counts.ts'
import { Ledger, type LifeHeard, type Stall } from '../../engine-kill/ledger.ts'
import { Life } from '../../engine-kill/life.ts'
import { ledgerFile, linesOf, now } from '../../engine-kill/load.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import { startServer } from '../server.ts'
import { cuttingProxy } from './cutting-proxy.ts'

export interface StormOptions {
  /** An empty folder. */
  readonly folder: string
  readonly seed: number
  /** Kills of workers, by `kill -9`. */
  readonly kills: number
  /** Stops of workers, for longer than a lease. */
  readonly stops: number
  /** Kills of the server, by `kill -9` of its main process. */
  readonly crashes: number
  /** Cuts of connections, after a commit and before its reply. */
  readonly cuts: number
  readonly compiled?: string
  /** The server and the proxy before it. The default is PostgreSQL. */
  readonly backend?: StormBackend
  readonly progress?: (kill: number) => void
}

interface StormServer {
  /** The address of the store without the proxy, and the address for the proxy. */
  readonly url: string
  readonly tcpUrl: string
  kill(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface StormProxy {
  readonly url: string
  cut(times: number, every: number): Promise<void>
  close(): void
}

export interface StormBackend {
  start(): Promise<StormServer>
  proxy(url: string, chance: () => number): Promise<StormProxy>
}

/** `cycles` counts the kills of workers. */
export interface StormCounts extends EngineCounts {
  stops: number
  crashes: number
  cuts: number
}

export interface StormReport {
  readonly counts: StormCounts
  /** The messages of the first violations. */
  readonly complaints: readonly string[]
}

export function noCounts(): StormCounts {
  return { ...noEngineCounts(), stops: 0, crashes: 0, cuts: 0 }
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
const WORKERS = 4
const RECEIVERS = 2
const SHORTEST_STOP_MS = 1_250
const LONGEST_STOP_MS = 1_700
const STOPPED_AT_ONCE = 2
const LATEST_KILL_MS = 200
/** The time in which a process finds out that it has lost its leases. */
const AFTER_STOP_MS = 300
const CUT_ONE_IN = 4
const SETTINGS = { max_connections: '200', shared_buffers: '64MB' }
const POSTGRES: StormBackend = { start: () => startServer({ version: 18, settings: SETTINGS }), proxy: cuttingProxy }

export async function storm(options: StormOptions): Promise<StormReport> {
  const backend = options.backend ?? POSTGRES
  const server = await backend.start()
  const chance = new Chance(seedOf(`${options.seed} cuts`))
  const proxy = await backend.proxy(server.tcpUrl, () => chance.next())
  const cluster = new Cluster(options, proxy.url)
  try {
    await cluster.open()
    await cluster.killAndStop()
    for (let crash = 0; crash < options.crashes; crash++) {
      await server.kill()
      await server.restart()
      await cluster.underLoad()
    }
    if (options.cuts > 0) await proxy.cut(options.cuts, CUT_ONE_IN)
    await cluster.underLoad()
    const ledger = await cluster.drained()
    await check(server.url, ledger)
    const { stops, crashes, cuts } = options
    const counts = { ...ledger.complaints.counts, cycles: options.kills, stops, crashes, cuts }
    return { counts, complaints: ledger.complaints.first }
  } finally {
    await cluster.end()
    proxy.close()
    await server.stop()
  }
}

interface Known {
  readonly number: number
  readonly life: Life
  readonly stops: Stall[]
  ended: number
}

class Cluster {
  readonly #options: StormOptions
  readonly #url: string
  readonly #chance: Chance
  readonly #all: Known[] = []
  readonly #receivers: Known[] = []
  /** The workers that are neither stopped nor about to be killed. */
  readonly #free: Known[] = []
  #acked = Promise.withResolvers<void>()

  constructor(options: StormOptions, url: string) {
    this.#options = options
    this.#url = url
    this.#chance = new Chance(seedOf(`${options.seed} storm`))
  }

  async open(): Promise<void> {
    for (let n = 0; n < RECEIVERS; n++) {
      const receiver = this.#begin('receive')
      receiver.life.hear(() => this.#acked.resolve())
      this.#receivers.push(receiver)
      await receiver.life.opened
    }
    await Promise.all(Array.from({ length: WORKERS }, () => this.#newWorker()))
    await this.underLoad()
  }

  #begin(role: 'receive' | 'work' | 'drain'): Known {
    const { folder, seed, compiled = join(folder, 'compiled') } = this.#options
    const number = this.#all.length + 1
    // The file exists even if the life is too short to write to it.
    writeFileSync(ledgerFile(folder, number), '')
    const life = new Life(CHILD, compiled, [folder, String(seed), String(number), role, this.#url])
    const known: Known = { number, life, stops: [], ended: Infinity }
    this.#all.push(known)
    return known
  }

  async #newWorker(): Promise<void> {
    const worker = this.#begin('work')
    await worker.life.opened
    this.#free.push(worker)
  }

  /** Resolves when the receivers acknowledge events again. */
  async underLoad(): Promise<void> {
    this.#acked = Promise.withResolvers()
    await Promise.race([this.#acked.promise, ...this.#receivers.map(async ({ life }) => life.ended)])
  }

  async killAndStop(): Promise<void> {
    const { kills, stops } = this.#options
    let stopsLeft = stops
    const stopping = Array.from({ length: STOPPED_AT_ONCE }, async () => {
      while (stopsLeft > 0) {
        stopsLeft--
        await this.#stopOne()
      }
    })
    await Promise.all([this.#killThem(kills), ...stopping])
  }

  async #killThem(kills: number): Promise<void> {
    const born: Promise<void>[] = []
    for (let kill = 1; kill <= kills; kill++) {
      await setTimeout(this.#chance.next() * LATEST_KILL_MS)
      const worker = await this.#taken()
      worker.ended = await worker.life.kill()
      born.push(this.#newWorker())
      this.#options.progress?.(kill)
    }
    await Promise.all(born)
  }

  async #stopOne(): Promise<void> {
    const worker = await this.#taken()
    const from = now()
    worker.life.stop()
    await setTimeout(SHORTEST_STOP_MS + this.#chance.next() * (LONGEST_STOP_MS - SHORTEST_STOP_MS))
    worker.life.goOn()
    worker.stops.push({ from, to: now() })
    await setTimeout(AFTER_STOP_MS)
    this.#free.push(worker)
  }

  /** Returns a working worker, once there is one. */
  async #taken(): Promise<Known> {
    for (;;) {
      const [worker] = this.#free.splice(this.#chance.below(this.#free.length), 1)
      if (worker !== undefined) return worker
      await setTimeout(AFTER_STOP_MS / 10)
    }
  }

  /** The receivers finish, the workers are killed, and one more worker runs until nothing is left. */
  async drained(): Promise<Ledger> {
    for (const receiver of this.#receivers) {
      receiver.life.tell('enough')
      await receiver.life.ended
      receiver.ended = now()
    }
    for (const worker of this.#free.splice(0)) worker.ended = await worker.life.kill()
    const last = this.#begin('drain')
    await last.life.ended
    last.ended = now()
    const ledger = new Ledger()
    ledger.hearTogether(this.#all.map((known) => this.#heard(known)))
    return ledger
  }

  #heard({ number, ended, stops }: Known): LifeHeard {
    return { life: number, lines: linesOf(ledgerFile(this.#options.folder, number)), ended, stops }
  }

  async end(): Promise<void> {
    for (const { life } of this.#all) await life.kill().catch(() => {})
  }
}
