// Which event has an identity. Identities are hashes, so that an index of them is written all over: one page for each event.
// So the newest ones wait in memory, sorted into ranges of the index, and one range at a time is written with a commit.
// Nothing is at risk: the events themselves are in the file, and memory is filled from them when it is opened.
import type { Identity } from '../../model/identity.ts'
import { IdentityFilter } from './identity-filter.ts'
import { number, text, type Statements } from './statements.ts'

const RANGES = 256
const RANGE_WIDTH = 2 ** 40
const KEPT_IN_MEMORY = 32_768

const FIND = 'select event from identities where h = ?'
const IS = 'select 1 from events where seq = ? and identity = ?'
const ADD = 'insert or ignore into identities (h, event)'
const UNWRITTEN = 'select seq, identity from events where seq >= ? and identity is not null order by seq'

export class Identities {
  readonly #sql: Statements
  readonly #index: IdentityFilter
  readonly #ranges = Array.from({ length: RANGES }, () => new Map<Identity, number>())
  /** What this commit put into memory and took out of it. */
  readonly #came: Identity[] = []
  readonly #went: [Identity, number][] = []
  /** The first event of this commit: it and those after it are not in the file if the commit is undone. */
  #firstNew = Infinity
  #count = 0
  /** The range that is written next. */
  #next = 0

  constructor(sql: Statements) {
    this.#sql = sql
    this.#index = new IdentityFilter(sql, RANGE_WIDTH)
    this.#load()
  }

  /** Fills memory from the events whose identities may not be in the index yet. */
  #load(): void {
    const from = number(this.#sql.get(`select value from meta where name = 'identified'`)?.[0] ?? 0)
    for (const [seq, identity] of this.#sql.all(UNWRITTEN, from)) this.#remember(text(identity), number(seq))
  }

  /** After a rollback memory is again as it was: what came is gone, what was written or removed is back. */
  letGo(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      this.#index.forget()
      for (const identity of this.#came) this.#forget(identity)
      for (const [identity, event] of this.#went) if (event < this.#firstNew) this.#remember(identity, event)
    }
    this.#firstNew = Infinity
    this.#came.length = 0
    this.#went.length = 0
  }

  find(identity: Identity): number | undefined {
    const h = prefixOf(identity)
    const known = this.#range(h).get(identity)
    if (known !== undefined) return known
    if (!this.#index.mayHave(h) || this.#sql.get(FIND, h) === undefined) return undefined
    const row = this.#sql.all(FIND, h).find(([event]) => this.#sql.get(IS, number(event), identity) !== undefined)
    return row === undefined ? undefined : number(row[0])
  }

  add(identity: Identity, event: number): void {
    this.#remember(identity, event)
    this.#came.push(identity)
    this.#firstNew = Math.min(this.#firstNew, event)
    while (this.#count > KEPT_IN_MEMORY) this.#write()
  }

  remove(identity: Identity, event: number): void {
    if (this.#forget(identity)) this.#went.push([identity, event])
    this.#sql.run('delete from identities where h = ? and event = ?', prefixOf(identity), event)
  }

  #remember(identity: Identity, event: number): void {
    const range = this.#range(prefixOf(identity))
    const before = range.size
    range.set(identity, event)
    this.#count += range.size - before
  }

  #forget(identity: Identity): boolean {
    const known = this.#range(prefixOf(identity)).delete(identity)
    if (known) this.#count--
    return known
  }

  #range(h: number): Map<Identity, number> {
    const range = this.#ranges[Math.floor(h / RANGE_WIDTH)]
    if (range === undefined) throw new RangeError('an identity has 48 bits of prefix')
    return range
  }

  #write(): void {
    const range = this.#ranges[this.#next] ?? new Map<Identity, number>()
    for (const [identity, event] of range) {
      const h = prefixOf(identity)
      this.#index.add(h)
      this.#sql.behind(ADD, [h, event])
      this.#went.push([identity, event])
    }
    this.#count -= range.size
    range.clear()
    this.#next = (this.#next + 1) % RANGES
    if (this.#next === 0) this.#roundDone()
  }

  /** Once round: whatever is older than all that is in memory is in the index. */
  #roundDone(): void {
    let oldest = Number.MAX_SAFE_INTEGER
    for (const range of this.#ranges) for (const event of range.values()) oldest = Math.min(oldest, event)
    this.#sql.run(`update meta set value = ? where name = 'identified'`, oldest)
  }
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIXBITS = new Uint8Array(128)
for (let value = 0; value < BASE64URL.length; value++) SIXBITS[BASE64URL.charCodeAt(value)] = value

/** The first 48 bits: 8 characters of 6 bits each. */
function prefixOf(identity: Identity): number {
  let h = 0
  for (let at = 0; at < 8; at++) h = h * 64 + (SIXBITS[identity.charCodeAt(at)] ?? 0)
  return h
}
