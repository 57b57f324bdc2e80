// Which event has an identity: of the newest memory knows it, of the others a table that is written late.
import type { Identity } from '../../model/identity.ts'
import { IdentityFilter } from './identity-filter.ts'
import { LateIndex, prefixOf } from './late-index.ts'
import { number, type Statements } from './statements.ts'

/** What stands in the table for an identity: its first 48 bits. */
const CHARACTERS = 8
/** Of these the first 8 name the range. */
const RANGE_WIDTH = 2 ** 40
const ROUND = 65_536

const UNWRITTEN = 'select seq, identity from events where seq >= ? and identity is not null order by seq'
const FIND = 'select event from identities where h = ?'
const IS = 'select 1 from events where seq = ? and identity = ?'

export class Identities {
  readonly #sql: Statements
  readonly #filter: IdentityFilter
  readonly #index: LateIndex<number>

  constructor(sql: Statements, readOnly: boolean) {
    this.#sql = sql
    this.#filter = new IdentityFilter(sql, RANGE_WIDTH)
    this.#index = new LateIndex(sql, {
      insert: 'insert or ignore into identities (h, event)',
      keyOf,
      round: ROUND,
      since: 'identified',
      unwritten: readOnly ? undefined : UNWRITTEN,
      wrote: (h) => this.#filter.add(h),
    })
  }

  letGo(how: 'committed' | 'rolled-back'): void {
    this.#filter.letGo(how)
    this.#index.letGo(how)
  }

  find(identity: Identity): number | undefined {
    const [known] = this.#index.of(identity)
    if (known !== undefined) return known
    const h = keyOf(identity)
    if (!this.#filter.mayHave(h) || this.#sql.get(FIND, h) === undefined) return undefined
    const row = this.#sql.all(FIND, h).find(([event]) => this.#sql.get(IS, number(event), identity) !== undefined)
    return row === undefined ? undefined : number(row[0])
  }

  add(identity: Identity, event: number): void {
    this.#index.add(identity, event)
  }

  remove(identity: Identity, event: number): void {
    this.#index.remove(identity, event)
    this.#sql.run('delete from identities where h = ? and event = ?', keyOf(identity), event)
  }
}

function keyOf(identity: Identity): number {
  return prefixOf(identity, CHARACTERS)
}
