// `Transactions` makes the work of a call atomic and durable. The rules decide on the rows that the transaction has loaded,
// receive what was missing, and decide again until nothing is missing. Then their changes are written and committed.
import type { Pool } from 'pg'
import { systemClock, type Clock, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply } from '../contract/index.ts'
import type { Committer, DirectCalls, TransactionBody } from '../core/store.ts'
import { Connection } from './connections.ts'
import { toSluiceError, isConflict, isLockNotAvailable, isReadOnly } from './errors.ts'
import type { Notifications } from './notifications.ts'
import { PlainCalls, type DirectPlan } from './plain-calls.ts'
import type { ActivityFeed } from './activity-feed.ts'
import { ScanStarts } from './scan-start.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { PostgresTables } from './tables.ts'

/** Each pass loads everything that the one before lacked. No work of Sluice needs more passes. */
const MAX_PASSES = 100
/** The maximum number of retries of a transaction after a conflict. */
const MAX_ATTEMPTS = 20
/** A transaction that needs lanes that others hold is retried for this long, however often. */
const MAX_LOCK_WAIT: Millis = 30_000

export interface TransactionsDependencies {
  readonly pool: Pool
  readonly name: string
  readonly schema: string
  /** For tests only; other processes use the server's clock. */
  readonly clock: Clock | undefined
  readonly notifications: Notifications
  readonly activityFeed: ActivityFeed
  /** For tests only: how to treat the next call that the rules need not decide. */
  readonly planDirect?: (() => DirectPlan) | undefined
}

export class Transactions implements Committer {
  readonly durable = { isDurable: true, reason: 'the server commits to its log before anything is acknowledged' }
  readonly #dependencies: TransactionsDependencies
  readonly #scanStarts = new ScanStarts()
  readonly direct: DirectCalls
  #open = true

  constructor(dependencies: TransactionsDependencies) {
    this.#dependencies = dependencies
    this.direct = new PlainCalls({ ...dependencies, isOpen: () => this.#open }, this.#scanStarts)
  }

  get hints(): Notifications {
    return this.#dependencies.notifications
  }

  get activityFeed(): ActivityFeed {
    return this.#dependencies.activityFeed
  }

  write<T>(work: TransactionBody<T>): Promise<T> {
    return this.#runWithRetries(work, false)
  }

  read<T>(work: TransactionBody<T>): Promise<T> {
    return this.#runWithRetries(work, true)
  }

  readClockAndEpoch(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    this.#dependencies.activityFeed.close()
    await this.#dependencies.notifications.close()
    await this.#dependencies.pool.end()
  }

  async #runWithRetries<T>(work: TransactionBody<T>, readOnly: boolean): Promise<T> {
    const began = systemClock.monotonic()
    let lockFirst: readonly LaneId[] = []
    for (let left = MAX_ATTEMPTS; ;) {
      if (!this.#open) throw new SluiceError('STORE_CLOSED', 'The store was closed.')
      const tables = this.#createTables(lockFirst)
      try {
        return await this.#runOnce(work, readOnly, tables)
      } catch (error) {
        if (isLockNotAvailable(error) && systemClock.monotonic() - began < MAX_LOCK_WAIT) {
          // Other transactions hold lanes that this one needs. It starts anew, and locks all lanes that any of its attempts has
          // found at once.
          lockFirst = [...new Set([...lockFirst, ...tables.lanes.lockedIds])]
        } else if (!isConflict(error) || left-- === 0) throw toSluiceError(error)
      }
    }
  }

  #createTables(lockFirst: readonly LaneId[]): PostgresTables {
    const { name, schema, clock } = this.#dependencies
    const lockNamespace = `sluice/${schema}/`
    return new PostgresTables({ lockFirst, name, lockNamespace, scanStarts: this.#scanStarts, now: clock?.now() })
  }

  async #runOnce<T>(work: TransactionBody<T>, readOnly: boolean, tables: PostgresTables): Promise<T> {
    const client = await this.#dependencies.pool.connect()
    let broken: Error | boolean = false
    try {
      const db = new Connection(client, readOnly)
      const begun = db.query(readOnly ? 'begin read only' : 'begin')
      const [result] = await Promise.all([runPasses(db, work, tables), begun])
      return result
    } catch (error) {
      broken = await client.query('rollback').then(
        () => isReadOnly(error),
        (cause: Error) => cause,
      )
      throw error
    } finally {
      client.release(broken)
    }
  }
}

async function runPasses<T>(db: Connection, work: TransactionBody<T>, tables: PostgresTables): Promise<T> {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    tables.resetPass()
    const made = tryRun(() => work(tables, tables.now ?? UNKNOWN_NOW))
    if (!tables.hasMisses) {
      if (made.kind === 'failed') throw made.error
      // All writes are built before the first is sent, so a fault in building leaves nothing that could be committed.
      const writes = db.readOnly ? [] : tables.buildWrites()
      const sent = writes.map(([sql, values]) => db.query(sql, values))
      const [isCommitted] = await Promise.all([db.commit(), ...sent])
      if (!isCommitted) throw new SluiceError('STORE_FAILED', 'The server undid the transaction.')
      return made.value
    }
    await tables.load(db)
  }
  throw new SluiceError('STORE_FAILED', 'A transaction found no end.')
}

/** `tryRun` catches errors: a pass may fail because of a miss, and is then repeated after the load. */
function tryRun<T>(
  work: () => T,
): { readonly kind: 'done'; readonly value: T } | { readonly kind: 'failed'; readonly error: unknown } {
  try {
    return { kind: 'done', value: work() }
  } catch (error) {
    return { kind: 'failed', error }
  }
}
