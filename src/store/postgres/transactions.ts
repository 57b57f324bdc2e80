// How the work of a call becomes atomic and durable here: the rules decide on what the transaction has at hand, are given
// what they lacked, and decide again, until nothing is lacking; then what they changed is written and committed.
import type { Pool } from 'pg'
import type { Clock } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { SluiceError } from '../../errors.ts'
import type { Reply } from '../contract/index.ts'
import type { Commits, Piece } from '../rules/store.ts'
import { Connection } from './connections.ts'
import { fault, isConflict, isHeld } from './faults.ts'
import type { Hints } from './hints.ts'
import { LineFloors } from './line-floors.ts'
import { SOON } from './ready-lines.ts'
import { PostgresTables } from './tables.ts'

/** Each pass loads all that the one before lacked; deeper than this nothing of ours reaches. */
const MOST_PASSES = 100
/** A transaction that was in another's way is done again. */
const MOST_TRIES = 20

export interface TransactionParts {
  readonly pool: Pool
  readonly name: string
  readonly schema: string
  /** Only for tests: real processes go by the server's clock. */
  readonly clock: Clock | undefined
  readonly hints: Hints
}

export class Transactions implements Commits {
  readonly durable = { yes: true, because: 'the server commits to its log before anything is acknowledged' }
  readonly #parts: TransactionParts
  readonly #floors = new LineFloors()
  #open = true

  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  get hints(): Hints {
    return this.#parts.hints
  }

  write<T>(work: Piece<T>): Promise<T> {
    return this.#do(work, false)
  }

  read<T>(work: Piece<T>): Promise<T> {
    return this.#do(work, true)
  }

  moment(): Promise<Reply> {
    return this.read((tables, now) => ({ now, routes: tables.routes() }))
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.#parts.hints.close()
    await this.#parts.pool.end()
  }

  async #do<T>(work: Piece<T>, readOnly: boolean): Promise<T> {
    let first: readonly LaneId[] = []
    for (let left = MOST_TRIES; ; left--) {
      if (!this.#open) throw new SluiceError('STORE_CLOSED', 'The store was closed.')
      const tables = this.#tables(first)
      try {
        return await this.#once(work, readOnly, tables)
      } catch (error) {
        if (left === 0 || !(isConflict(error) || isHeld(error))) throw fault(error)
        // Lanes that it came back for are held by others: it begins anew, and locks all of them at once.
        if (isHeld(error)) first = tables.lanes.named
      }
    }
  }

  #tables(first: readonly LaneId[]): PostgresTables {
    const { name, schema, clock } = this.#parts
    return new PostgresTables({ first, name, space: `sluice/${schema}/`, now: clock?.now(), floors: this.#floors })
  }

  async #once<T>(work: Piece<T>, readOnly: boolean, tables: PostgresTables): Promise<T> {
    const client = await this.#parts.pool.connect()
    let broken: Error | undefined
    try {
      const db = new Connection(client, readOnly)
      const begun = db.rows(readOnly ? 'begin read only' : 'begin')
      const [answer] = await Promise.all([decided(db, work, tables), begun])
      return answer
    } catch (error) {
      broken = await client.query('rollback').then(
        () => undefined,
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
      const [, isCommitted] = await Promise.all([db.readOnly ? undefined : tables.write(db), db.commit()])
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
