// `IdentityIndex` finds the event with an identity. Memory holds the newest identities; a table that is written late
// holds the others.
import type { EventIdentity } from '../../model/identity.ts'
import { IdentityFilter } from './identity-filter.ts'
import { WriteBehindIndex, hashPrefix } from './write-behind-index.ts'
import { number, type Statements } from './statements.ts'

/** The table stores the first 48 bits of an identity. */
const KEY_CHARACTERS = 8
/** The first 8 bits select the range. */
const RANGE_WIDTH = 2 ** 40
const ROUND_SIZE = 65_536

const UNWRITTEN = 'select seq, identity from events where seq >= ? and identity is not null order by seq'
const FIND = 'select event from identities where h = ?'
const IS = 'select 1 from events where seq = ? and identity = ?'

export class IdentityIndex {
  readonly #sql: Statements
  readonly #filter: IdentityFilter
  readonly #index: WriteBehindIndex<number>

  constructor(sql: Statements, readOnly: boolean) {
    this.#sql = sql
    this.#filter = new IdentityFilter(sql, RANGE_WIDTH)
    this.#index = new WriteBehindIndex(sql, {
      insert: 'insert or ignore into identities (h, event)',
      keyOf: toIndexKey,
      round: ROUND_SIZE,
      since: 'identified',
      unwritten: readOnly ? undefined : UNWRITTEN,
      onWritten: (h) => this.#filter.add(h),
    })
  }

  afterTransaction(how: 'committed' | 'rolled-back'): void {
    this.#filter.afterTransaction(how)
    this.#index.afterTransaction(how)
  }

  find(identity: EventIdentity): number | undefined {
    const [known] = this.#index.find(identity)
    if (known !== undefined) return known
    const h = toIndexKey(identity)
    if (!this.#filter.mayContain(h) || this.#sql.get(FIND, h) === undefined) return undefined
    const row = this.#sql.all(FIND, h).find(([event]) => this.#sql.get(IS, number(event), identity) !== undefined)
    return row === undefined ? undefined : number(row[0])
  }

  add(identity: EventIdentity, event: number): void {
    this.#index.add(identity, event)
  }

  remove(identity: EventIdentity, event: number): void {
    this.#index.remove(identity, event)
    this.#sql.run('delete from identities where h = ? and event = ?', toIndexKey(identity), event)
  }
}

function toIndexKey(identity: EventIdentity): number {
  return hashPrefix(identity, KEY_CHARACTERS)
}
