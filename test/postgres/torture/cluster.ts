// Runs four stores on one schema, two workers on each, publishers, an operator, and a task that terminates backends, all at
// once, until the plan is done. Then all remaining work must end, and all tables are read.
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { systemClock } from '../../../src/clock.ts'
import type { Sluice } from '../../../src/index.ts'
import { attachTest } from '../../../src/app/sluice.ts'
import type { RetentionPolicy, Store } from '../../../src/store/contract/index.ts'
import { connectStore, createStore, openPostgresStore } from '../../../src/store/postgres/store.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import { LEASE, tortured, type Scene } from './app.ts'
import { DIRECT_CALLS_MODES, planOf } from '../direct-calls.ts'
import { Ledger } from './ledger.ts'
import { operate } from './operator.ts'
import { noteError, untilAnswered } from './patient.ts'
import { publishInTransactions, publishOn } from './publishers.ts'
import { readAll, type Tables } from './tables.ts'
import { WatchedStore } from './watched-store.ts'

export interface TortureOptions {
  readonly url: string
  /** A new schema. */
  readonly schema: string
  readonly seed: number
  /** The number of batches of each of four publishers. */
  readonly batches: number
  /** The number of acts of the operator. */
  readonly acts: number
  /** The number of backends to terminate. */
  readonly terminated: number
  /** The number of workers that stall for longer than a lease, and of workers that crash. */
  readonly stalls: number
  readonly crashes: number
  /** Remaining work that does not change for this long is stuck. */
  readonly stuckAfter?: number
  /** Whether everything has happened that the test is about. If not, another round follows. */
  readonly isEnough?: (soFar: SoFar) => boolean
  /** Changes the tables before the remaining work must end. */
  readonly meddle?: (at: Meddling) => Promise<void>
}

interface Meddling {
  readonly app: Sluice
  readonly ledger: Ledger
  /** A client with the schema as its search path. */
  readonly client: pg.Client
}

/** What has happened when no work is left. */
export interface SoFar {
  readonly ledger: Ledger
  readonly tables: Tables
  /** How many backends were terminated. */
  readonly terminated: number
}

export interface Tortured extends SoFar {
  /** The tables when all retention has passed: the remaining rows stay forever. */
  readonly remains: Tables
  /** The dead letters that an operator sees. */
  readonly listed: readonly string[]
}

/** One round shows everything nine times in ten. */
const MAX_ROUNDS = 20
const STORES = 4
const WORKERS = 8
const CONNECTIONS = 6
const LONGEST_BETWEEN_MS = 250
const STALL_MS = LEASE * 1.4
const SHOWN_EVERY_MS = 100
const STUCK_AFTER_MS = 45_000
const YEARS = 3 * 365 * 86_400_000
const DAY = 86_400_000
const KEPT: RetentionPolicy = {
  events: { '': 90 * DAY },
  runs: { '': 90 * DAY },
  deadLetters: 365 * DAY,
  bytes: Number.MAX_SAFE_INTEGER,
  lanesPerTenant: {},
}

interface Worker {
  readonly app: Sluice
  readonly watched: WatchedStore
  readonly bare: Store
  readonly crash: () => void
}

export async function torture(options: TortureOptions): Promise<Tortured> {
  const cluster = await Cluster.open(options)
  try {
    for (let round = 0; ; round++) {
      await cluster.work(round)
      const drained = await cluster.drain(round)
      if (round === MAX_ROUNDS || (await cluster.hasEnough())) return await cluster.look(drained)
    }
  } finally {
    await cluster.close()
  }
}

class Cluster {
  readonly #options: TortureOptions
  readonly #scene: Scene
  readonly #stores: readonly Store[]
  readonly #client: pg.Client
  readonly #label: string
  readonly #workers: Worker[] = []
  readonly #others: Sluice[] = []
  #made = 0
  #terminated = 0

  constructor(options: TortureOptions, stores: readonly Store[], client: pg.Client, label: string) {
    this.#options = options
    this.#stores = stores
    this.#client = client
    this.#label = label
    this.#scene = { seed: options.seed, ledger: new Ledger(), isCalm: false }
  }

  static async open(options: TortureOptions): Promise<Cluster> {
    const { url, schema } = options
    const label = `torture ${schema}`
    const named = `${url}${url.includes('?') ? '&' : '?'}application_name=${encodeURIComponent(label)}`
    const stores: Store[] = []
    const client = new pg.Client({ connectionString: url })
    const cluster = new Cluster(options, stores, client, label)
    try {
      await client.connect()
      // The stores differ in who decides the calls that need no rules.
      const modes = [...DIRECT_CALLS_MODES, 'mixed'] as const
      const storeOptions = { url: named, schema, connections: CONNECTIONS, acceptLoss: true }
      for (let n = 0; n < STORES; n++) {
        const plan = planOf(modes[n % modes.length] ?? 'direct', options.seed + n)
        stores.push(createStore(await connectStore(storeOptions), storeOptions, plan))
      }
      await client.query(`set search_path = "${schema}"`)
      for (let n = 0; n < WORKERS; n++) await cluster.#newWorker(stores[n % STORES] as Store)
      return cluster
    } catch (error) {
      await cluster.close()
      throw error
    }
  }

  /** `crash` behaves as if the process had been killed, but its connections stay open. */
  async #newWorker(bare: Store): Promise<void> {
    const { ledger } = this.#scene
    const name = `worker-${this.#made++}`
    const watched = new WatchedStore(name, bare, ledger)
    const app = tortured(name, watched.store, this.#scene)
    const { crash } = attachTest(app, {
      clock: systemClock,
      store: watched.store,
      minPollInterval: 250,
      watch: (run, handler) => handler(run as never),
    })
    await untilAnswered(ledger, 'start', () => app.start())
    this.#workers.push({ app, watched, bare, crash })
  }

  /** An app that runs no lanes. */
  #other(name: string, store: Store): Sluice {
    const app = tortured(name, store, this.#scene)
    this.#others.push(app)
    return app
  }

  /** No name of a process or a publisher may be used twice. */
  async work(round: number): Promise<void> {
    const { batches, acts, url } = this.#options
    const { ledger } = this.#scene
    this.#scene.isCalm = false
    const seed = this.#seedOf(round)
    const suffix = round === 0 ? '' : `.${round}.`
    const by = (name: string, at: number): Parameters<typeof publishOn>[0] => {
      const app = this.#other(`${name}${suffix}`, this.#stores[at % STORES] as Store)
      return { app, name: `${name}${suffix}`, ledger, seed, batches }
    }
    await Promise.all([
      ...['p', 'q', 'r', 's'].map((name, at) => publishOn(by(name, at))),
      publishInTransactions({ ...by('t', 1), url }),
      operate({ app: this.#other(`operator${suffix}`, this.#stores[2] as Store), ledger, seed, acts }),
      this.#terminate(seed),
      this.#stall(seed),
      this.#crash(seed),
    ])
  }

  /** Terminates a backend in any state: listening, idle in its pool, or in the middle of a transaction. */
  async #terminate(seed: number): Promise<void> {
    const chance = new Chance(seedOf(`${seed} backends`))
    for (let n = 0; n < this.#options.terminated; n++) {
      await setTimeout(chance.next() * LONGEST_BETWEEN_MS)
      const sql = 'select pid from pg_stat_activity where application_name = $1 order by pid'
      const { rows } = await this.#client.query<{ pid: number }>(sql, [this.#label])
      const one = rows[chance.below(rows.length)]
      if (one === undefined) continue
      await this.#client.query('select pg_terminate_backend($1)', [one.pid])
      this.#terminated++
    }
  }

  async #stall(seed: number): Promise<void> {
    const chance = new Chance(seedOf(`${seed} stalls`))
    for (let n = 0; n < this.#options.stalls; n++) {
      await setTimeout(chance.next() * LONGEST_BETWEEN_MS)
      await this.#workers[chance.below(this.#workers.length)]?.watched.standStill(STALL_MS)
    }
  }

  async #crash(seed: number): Promise<void> {
    const chance = new Chance(seedOf(`${seed} crashes`))
    for (let n = 0; n < this.#options.crashes; n++) {
      await setTimeout(LEASE * chance.next())
      const [worker] = this.#workers.splice(chance.below(this.#workers.length), 1)
      if (worker === undefined) continue
      worker.crash()
      this.#others.push(worker.app)
      await this.#newWorker(worker.bare)
    }
  }

  /** A different plan for each round. */
  #seedOf(round: number): number {
    const { seed } = this.#options
    return round === 0 ? seed : seedOf(`${seed} round ${round}`)
  }

  async hasEnough(): Promise<boolean> {
    const { isEnough = () => true, schema } = this.#options
    if (this.#scene.ledger.wrong.length > 0) return true
    const tables = await readAll(this.#client, schema)
    return isEnough({ ledger: this.#scene.ledger, tables, terminated: this.#terminated })
  }

  /** All remaining work must succeed, except dead letters that block no lane. Returns these. */
  async drain(round: number): Promise<readonly string[]> {
    this.#scene.isCalm = true
    const operator = this.#other(`drain.${round}`, this.#stores[3] as Store)
    await this.#options.meddle?.({ app: operator, ledger: this.#scene.ledger, client: this.#client })
    let [last, since] = ['', Date.now()]
    for (;;) {
      const left = await this.#left()
      if (left === '') break
      if (left !== last) [last, since] = [left, Date.now()]
      if (Date.now() - since > (this.#options.stuckAfter ?? STUCK_AFTER_MS)) {
        this.#scene.ledger.wrong.push(`stuck: ${left}`)
        break
      }
      await this.#help(operator).catch((error: unknown) => noteError(this.#scene.ledger, 'the drain', error))
      await setTimeout(SHOWN_EVERY_MS)
    }
    return untilAnswered(this.#scene.ledger, 'deadLetters.list', () => this.#deadLetters(operator))
  }

  /** Describes the remaining work; empty if no work remains. Any change of the text shows progress. */
  async #left(): Promise<string> {
    const { rows } = await this.#client.query<{ what: string }>(
      `select concat_ws(' ', 'lane', flow, convert_from(key, 'UTF8'), waiting, due, lease, rest, ticket, token) as what from lanes
      union all select concat_ws(' ', 'mark', reason, flow, tries) from marks
      union all select concat_ws(' ', 'outbox', id, refused) from outbox`,
    )
    return rows.map(({ what }) => what).join('\n')
  }

  async #help(operator: Sluice): Promise<void> {
    // Maintenance deletes the lanes that only remember their last run.
    await upkept(this.#stores[3] as Store)
    for (const { flow } of await operator.admin.flows.list()) await operator.admin.flows.resume(flow, 'operator')
    const { items } = await operator.admin.lanes.list({}, '', 1_000)
    for (const { flow, key, hold, window, waiting } of items) {
      if (hold !== undefined) await operator.admin.lanes.unhold(flow, key)
      if (waiting > 0 && window > Date.now()) await operator.admin.lanes.runNow(flow, key)
    }
    for (const deadLetter of (await operator.admin.deadLetters.list({}, '', 1_000)).items) {
      if (deadLetter.kind === 'run' && deadLetter.blocks) await operator.admin.deadLetters.retry(deadLetter.id)
    }
    await operator.admin.deadLetters.retry({ kind: 'unrouted' })
  }

  async #deadLetters({ admin: { deadLetters } }: Sluice): Promise<readonly string[]> {
    const ids: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Awaited<ReturnType<typeof deadLetters.list>> = await deadLetters.list({}, cursor)
      ids.push(...page.items.map(({ id }) => id))
      cursor = page.next
    }
    return ids
  }

  async look(listed: readonly string[]): Promise<Tortured> {
    await this.#stopAll()
    const { schema } = this.#options
    // Short-lived rows are deleted, and bodies that are no longer needed.
    await upkept(this.#stores[0] as Store)
    const tables = await readAll(this.#client, schema)
    const remains = await this.#muchLater()
    return { ledger: this.#scene.ledger, tables, remains, listed, terminated: this.#terminated }
  }

  async #muchLater(): Promise<Tables> {
    const { url, schema } = this.#options
    const clock = { ...systemClock, now: () => Date.now() + YEARS }
    const store = await openPostgresStore({ url, schema, clock, acceptLoss: true })
    try {
      // Deletes what the first round found expired.
      for (let times = 0; times < 2; times++) await upkept(store)
    } finally {
      await store.close()
    }
    return readAll(this.#client, schema)
  }

  async #stopAll(): Promise<void> {
    const apps = [...this.#workers.splice(0).map(({ app }) => app), ...this.#others.splice(0)]
    await Promise.all(apps.map((app) => app.stop()))
  }

  async close(): Promise<void> {
    await this.#stopAll()
    await Promise.all(this.#stores.map((store) => store.close()))
    await this.#client.query(`drop schema if exists "${this.#options.schema}" cascade`).catch(() => {})
    await this.#client.end()
  }
}

async function upkept(store: Store): Promise<void> {
  while ((await store.maintain({ budget: 1_000, policy: KEPT })).more);
}
