// `Transactions` makes the work of a call atomic. The rules decide on cached and loaded rows; one script checks that these are still as
// they were, and writes everything or nothing. After a conflict the rows are loaded again, and the rules decide again. Calls that wait
// at the same time share a transaction, so the calls of one process do not conflict with each other.
import { randomBytes } from 'node:crypto'
import { systemClock, type Clock, type Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply, StatsReply } from '../contract/index.ts'
import type { Committer, TransactionBody } from '../core/store.ts'
import type { RedisConnection } from './client.ts'
import { isOutOfMemory, toSluiceError } from './errors.ts'
import type { HintChannel } from './hints.ts'
import { VERSION_LENGTH } from './row-cache.ts'
import { NUMBERS_PER_COMMIT } from './counter.ts'
import { runScript, Script } from './scripts.ts'
import type { CommitRequest } from './script-requests.ts'
import { ServerTime } from './server-time.ts'
import { ProcessCache, RedisTables } from './tables.ts'

const READ = new Script('load.lua', 'no-writes')
/** A store that is full still ends runs, because that is how it gets room. */
const LOAD = new Script('load.lua', 'allow-oom')
const COMMIT = new Script('commit.lua', 'allow-oom')
const COMMIT_ARRIVALS = new Script('commit.lua', '')

/** Each pass loads everything that the one before lacked. No work of Sluice needs more passes. */
const MAX_PASSES = 100
/** A transaction that meets conflicts is decided again for this long. */
const MAX_CONFLICT_TIME: Millis = 30_000
/** The most calls in one transaction. A script keeps all others waiting. */
const MAX_CALLS = 200

/** The time of a transaction before the first reply of the server. */
const UNKNOWN_NOW: Millis = -1

export interface TransactionsDependencies {
  readonly connection: RedisConnection
  readonly prefix: string
  readonly name: string
  /** For tests only; other processes use the server's clock. */
  readonly clock: Clock | undefined
  readonly hints: HintChannel
  readonly durable: StatsReply['durable']
  /** Resolves when the commits of this connection are as durable as the options ask for. */
  readonly awaitDurability: (() => Promise<void>) | undefined
}

type Kind = 'arrivals' | 'changes'

interface QueuedCall {
  readonly kind: Kind
  readonly work: TransactionBody<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type Outcome = { readonly kind: 'done'; readonly value: unknown } | { readonly kind: 'failed'; readonly error: unknown }

export class Transactions implements Committer {
  readonly durable: StatsReply['durable']
  readonly hints: HintChannel
  readonly #dependencies: TransactionsDependencies
  readonly #cache = new ProcessCache()
  readonly #time: ServerTime
  readonly #processName = randomBytes(4).toString('base64url').slice(0, 5)
  #commits = 0
  #queue: QueuedCall[] = []
  #running: Promise<void> | undefined
  #isOpen = true
  /** After a conflict because of an assumption, so many transactions make none. */
  #caution = 0
  #cautionLeft = 0

  constructor(dependencies: TransactionsDependencies) {
    this.#dependencies = dependencies
    this.durable = dependencies.durable
    this.hints = dependencies.hints
    this.#time = new ServerTime(dependencies.clock)
    dependencies.connection.onLost(() => {
      this.#cache.forget()
      this.#time.forget()
    })
  }

  write<T>(work: TransactionBody<T>): Promise<T> {
    return this.#enqueue(work, 'changes')
  }

  writeArrivals<T>(work: TransactionBody<T>): Promise<T> {
    return this.#enqueue(work, 'arrivals')
  }

  #enqueue<T>(work: TransactionBody<T>, kind: Kind): Promise<T> {
    if (!this.#isOpen) return Promise.reject(closed())
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ kind, work, resolve: resolve as (value: unknown) => void, reject })
      this.#running ??= this.#run()
    })
  }

  async #run(): Promise<void> {
    // The calls of this turn of the event loop go together.
    await Promise.resolve()
    for (let batch = this.#takeBatch(); batch.length > 0; batch = this.#takeBatch()) {
      try {
        const outcomes = await this.#commitBatch(batch)
        for (const [at, call] of batch.entries()) settle(call, outcomes[at])
      } catch (error) {
        this.#cache.forget()
        const failure = toSluiceError(error)
        for (const call of batch) call.reject(failure)
      }
    }
    this.#running = undefined
  }

  /** Arrivals and changes are committed apart, because a full server rejects only arrivals. */
  #takeBatch(): readonly QueuedCall[] {
    const kind = this.#queue[0]?.kind
    const batch: QueuedCall[] = []
    const rest: QueuedCall[] = []
    for (const call of this.#queue) (call.kind === kind && batch.length < MAX_CALLS ? batch : rest).push(call)
    this.#queue = rest
    return batch
  }

  async #commitBatch(batch: readonly QueuedCall[]): Promise<readonly Outcome[]> {
    const kind = batch[0]?.kind ?? 'changes'
    const began = systemClock.monotonic()
    const tables = this.#createTables()
    tables.assumeNew(kind === 'arrivals' && this.#mayAssume())
    const failed = new Map<QueuedCall, Outcome>()
    while (systemClock.monotonic() - began < MAX_CONFLICT_TIME) {
      const outcomes = await this.#decide(tables, batch, failed)
      const thrown = batch.flatMap((call, at) => {
        const outcome = outcomes[at]
        return outcome?.kind === 'failed' && !failed.has(call) ? [{ call, outcome }] : []
      })
      // Rows that were loaded one after the other may contradict each other, so an error counts only if nothing has changed since. The
      // call has written nothing then, and the others are decided again without it.
      const commit = tables.buildCommit(this.#nextVersion(), thrown.length === 0)
      if (!commit.isEmpty) {
        const conflicts = await this.#commit(kind, commit)
        if (conflicts.length > 0) {
          this.#handleConflicts(tables, commit, conflicts)
          continue
        }
      }
      for (const { call, outcome } of thrown) failed.set(call, outcome)
      if (thrown.length > 0) continue
      tables.updateCache(commit.version)
      return outcomes
    }
    throw new SluiceError('STORE_FAILED', 'Other processes keep changing the same rows.')
  }

  #nextVersion(): string {
    const length = VERSION_LENGTH - this.#processName.length
    return this.#processName + (++this.#commits).toString(36).padStart(length, '0').slice(-length)
  }

  #handleConflicts(tables: RedisTables, commit: CommitRequest, conflicts: readonly number[]): void {
    commit.reportConflicts(conflicts)
    this.#beCautious()
    tables.forgetLoaded()
    if (conflicts.includes(0)) this.#cache.counter.forget()
  }

  async #commit(kind: Kind, commit: CommitRequest): Promise<readonly number[]> {
    const { connection, awaitDurability } = this.#dependencies
    const script = kind === 'arrivals' ? COMMIT_ARRIVALS : COMMIT
    const reply = runScript(connection, script, commit.keys, commit.arguments)
    const [now, last, conflicts] = (await reply.catch(raiseFull)) as readonly [Buffer, Buffer, number[]]
    this.#time.record(Number(now))
    if (conflicts.length === 0) {
      this.#cache.counter.setBlock(Number(last), NUMBERS_PER_COMMIT, false)
      await awaitDurability?.()
    }
    return conflicts
  }

  /** Runs all calls in passes, until nothing is missing. Calls that have failed do not run again. */
  async #decide(
    tables: RedisTables,
    batch: readonly QueuedCall[],
    failed: ReadonlyMap<QueuedCall, Outcome>,
  ): Promise<readonly Outcome[]> {
    // All passes of a decision have the same time.
    let now = this.#time.now ?? UNKNOWN_NOW
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      tables.resetPass()
      const outcomes = batch.map((call) => failed.get(call) ?? tryRun(() => call.work(tables, now)))
      if (!tables.hasMisses && now !== UNKNOWN_NOW) return outcomes
      await this.#load(tables, false)
      if (now === UNKNOWN_NOW) now = this.#time.now ?? UNKNOWN_NOW
    }
    throw new SluiceError('STORE_FAILED', 'A transaction found no end.')
  }

  async #load(tables: RedisTables, isReadOnly: boolean): Promise<void> {
    const load = tables.buildLoad(isReadOnly)
    const reply = await runScript(this.#dependencies.connection, isReadOnly ? READ : LOAD, load.keys, load.arguments)
    const [now, last, replies] = reply as readonly [Buffer, Buffer, Parameters<typeof load.receive>[0]]
    this.#time.record(Number(now))
    if (load.draws > 0) this.#cache.counter.setBlock(Number(last), load.draws, true)
    load.receive(replies)
  }

  async read<T>(work: TransactionBody<T>): Promise<T> {
    if (!this.#isOpen) throw closed()
    try {
      // A read must see what other processes have written, so it does not use the cache.
      const tables = this.#createTables(new ProcessCache())
      let now = this.#time.now ?? UNKNOWN_NOW
      for (let pass = 0; pass < MAX_PASSES; pass++) {
        tables.resetPass()
        const made = tryRun(() => work(tables, now))
        if (!tables.hasMisses && now !== UNKNOWN_NOW) {
          if (made.kind === 'failed') throw made.error
          return made.value as T
        }
        await this.#load(tables, true)
        if (now === UNKNOWN_NOW) now = this.#time.now ?? UNKNOWN_NOW
      }
      throw new SluiceError('STORE_FAILED', 'A read found no end.')
    } catch (error) {
      throw toSluiceError(error)
    }
  }

  readClockAndEpoch(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    await this.#running
    await this.#dependencies.hints.close()
    await this.#dependencies.connection.close()
  }

  #createTables(cache: ProcessCache = this.#cache): RedisTables {
    const { prefix, name } = this.#dependencies
    return new RedisTables({ prefix, name, cache })
  }

  #mayAssume(): boolean {
    if (this.#cautionLeft === 0) return true
    this.#cautionLeft--
    return false
  }

  #beCautious(): void {
    this.#caution = Math.min(Math.max(1, 2 * this.#caution), 64)
    this.#cautionLeft = this.#caution
  }
}

const NEVER_RAN: Outcome = { kind: 'failed', error: undefined }

function tryRun(work: () => unknown): Outcome {
  try {
    return { kind: 'done', value: work() }
  } catch (error) {
    return { kind: 'failed', error }
  }
}

function settle(call: QueuedCall, outcome: Outcome = NEVER_RAN): void {
  if (outcome.kind === 'done') call.resolve(outcome.value)
  else call.reject(outcome.error)
}

function closed(): SluiceError {
  return new SluiceError('STORE_CLOSED', 'The store was closed.')
}

/** The server has rejected the script before its first write. */
function raiseFull(error: unknown): never {
  if (!isOutOfMemory(error)) throw error
  throw new SluiceError('STORE_FULL', 'The Redis server has reached maxmemory.', error, FULL)
}

const FULL = 'Raise maxmemory, or keep finished work for a shorter time. Acknowledged events are kept.'
