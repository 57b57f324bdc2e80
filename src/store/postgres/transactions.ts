// How the work of a call becomes atomic and durable here: the rules decide on what the transaction has at hand, are given
// what they lacked, and decide again, until nothing is lacking; then what they changed is written and committed.
import type { Pool } from 'pg'
import type { Clock } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply } from '../contract/index.ts'
import type { Commits, Piece } from '../rules/store.ts'
import { Beliefs } from './beliefs.ts'
import { Connection } from './connections.ts'
import { fault, isConflict, isHeld, isReadOnly, isRefusal } from './faults.ts'
import type { Hints } from './hints.ts'
import { OneLine } from './one-line.ts'
import type { Onlookers } from './onlookers.ts'
import { LineFloors } from './line-floors.ts'
import { OwnClaims } from './own-claims.ts'
import { SOON } from './ready-lines.ts'
import { PostgresTables, type TableParts } from './tables.ts'

/** Each pass loads all that the one before lacked; deeper than this nothing of ours reaches. */
const MOST_PASSES = 100
/**
 * Who guesses takes lanes that it believes to be new after all others, and so not in the one order in which all lock: where it
 * would wait for somebody who waits for it, it gives up long before the server would look for that.
 */
const WAITS_BRIEFLY = `select set_config('lock_timeout', '500ms', true)`
/** A transaction that was in another's way is done again. */
const MOST_TRIES = 20

export interface TransactionParts {
  readonly pool: Pool
  readonly name: string
  readonly schema: string
  /** Only for tests: real processes go by the server's clock. */
  readonly clock: Clock | undefined
  readonly hints: Hints
  readonly onlookers: Onlookers
}

export class Transactions implements Commits {
  readonly durable = { yes: true, because: 'the server commits to its log before anything is acknowledged' }
  readonly #parts: TransactionParts
  readonly #floors = new LineFloors()
  readonly #claims = new OwnClaims()
  readonly #beliefs: Beliefs
  readonly #line: OneLine
  readonly #unguessed = new Set<Promise<unknown>>()
  #open = true

  constructor(parts: TransactionParts) {
    this.#parts = parts
    this.#beliefs = new Beliefs(parts.clock)
    this.#line = new OneLine(parts.pool)
    // None is given up for its age: it was lost.
    parts.pool.on('remove', () => this.#beliefs.wereOfAnother())
  }

  get hints(): Hints {
    return this.#parts.hints
  }

  get onlookers(): Onlookers {
    return this.#parts.onlookers
  }

  write<T>(work: Piece<T>): Promise<T> {
    return this.#do(work, false)
  }

  read<T>(work: Piece<T>): Promise<T> {
    return this.#do(work, true)
  }

  /** Decided on what this process believes, and sent at once: where that was not so, it is done in the ordinary way. */
  async writeArrivals<T>(work: Piece<T>): Promise<T> {
    if (this.#open && this.#beliefs.areTrusted) {
      // What is under way here in the ordinary way changes the same lanes, most likely.
      await Promise.allSettled(this.#unguessed)
      const guessed = await this.#guess(work)
      if (guessed !== undefined) return guessed.value
    }
    const written = this.write(work)
    this.#unguessed.add(written)
    return written.finally(() => this.#unguessed.delete(written))
  }

  async #guess<T>(work: Piece<T>): Promise<{ readonly value: T } | undefined> {
    const client = await this.#line.take().catch((error: unknown) => {
      throw fault(error)
    })
    let broken = false
    let tables: PostgresTables | undefined
    let committed: Promise<boolean> | undefined
    try {
      // From here to what is sent nothing is waited for: the next guess is made on this one.
      const now = this.#beliefs.now
      if (now === undefined) return undefined
      tables = this.#tables([], { isGuess: true, now })
      const made = attempt(() => work(tables as PostgresTables, now))
      if (tables.cannotBeGuessed || made.kind === 'failed') return undefined
      const writes = tables.writes()
      const db = new Connection(client, false)
      const begun = [db.rows('begin'), db.rows(WAITS_BRIEFLY)]
      const sent = Promise.all([tables.send(db, writes), (committed = db.commit()), ...begun])
      tables.teach()
      const [, isCommitted] = await sent
      if (!isCommitted) throw new SluiceError('STORE_FAILED', 'The server undid the transaction.')
      this.#beliefs.wereRight()
      return made
    } catch (error) {
      tables?.lanes.forget()
      if (isRefusal(error)) {
        this.#beliefs.wereWrong()
        return undefined
      }
      broken = committed !== undefined
      throw fault(error)
    } finally {
      // The connection is nobody else's before the last answer is here.
      await committed?.catch(() => {})
      this.#line.giveBack(broken)
    }
  }

  moment(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    this.#parts.onlookers.close()
    await this.#parts.hints.close()
    await this.#parts.pool.end()
  }

  async #do<T>(work: Piece<T>, readOnly: boolean): Promise<T> {
    let first: readonly LaneId[] = []
    for (let left = MOST_TRIES; ; left--) {
      if (!this.#open) throw new SluiceError('STORE_CLOSED', 'The store was closed.')
      const tables = this.#tables(first, { isGuess: false, now: this.#parts.clock?.now() })
      try {
        return await this.#once(work, readOnly, tables)
      } catch (error) {
        if (left === 0 || !(isConflict(error) || isHeld(error))) throw fault(error)
        // Lanes that it came back for are held by others: it begins anew, and locks all of them at once.
        if (isHeld(error)) first = tables.lanes.named
      }
    }
  }

  #tables(first: readonly LaneId[], how: Pick<TableParts, 'isGuess' | 'now'>): PostgresTables {
    const { name, schema } = this.#parts
    const ofProcess = { floors: this.#floors, claims: this.#claims, beliefs: this.#beliefs }
    return new PostgresTables({ first, name, space: `sluice/${schema}/`, ...ofProcess, ...how })
  }

  async #once<T>(work: Piece<T>, readOnly: boolean, tables: PostgresTables): Promise<T> {
    const client = await this.#parts.pool.connect()
    let broken: Error | boolean = false
    try {
      const db = new Connection(client, readOnly)
      const begun = db.rows(readOnly ? 'begin read only' : 'begin')
      const [answer] = await Promise.all([decided(db, work, tables), begun])
      tables.teach()
      return answer
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

async function decided<T>(db: Connection, work: Piece<T>, tables: PostgresTables): Promise<T> {
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    tables.again()
    const made = attempt(() => work(tables, tables.now ?? SOON))
    if (!tables.isLacking) {
      if (made.kind === 'failed') throw made.error
      // All of them, before the first is sent: what fails in the making leaves nothing behind that could be committed.
      const writes = db.readOnly ? [] : tables.writes()
      const sent = writes.map(([sql, values]) => db.rows(sql, values))
      const [isCommitted] = await Promise.all([db.commit(), ...sent])
      if (!isCommitted) throw new SluiceError('STORE_FAILED', 'The server undid the transaction.')
      return made.value
    }
    await tables.load(db)
  }
  throw new SluiceError('STORE_FAILED', 'A transaction found no end.')
}

/** What fails for want of something is tried again when it is there. */
function attempt<T>(
  work: () => T,
): { readonly kind: 'done'; readonly value: T } | { readonly kind: 'failed'; readonly error: unknown } {
  try {
    return { kind: 'done', value: work() }
  } catch (error) {
    return { kind: 'failed', error }
  }
}
