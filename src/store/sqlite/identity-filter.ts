// `IdentityFilter` rules out most new identities without reading the index. It reads a range of the index once, when
// the range is first written or looked up, and then keeps one bit per identity.
import { number, type Statements } from './statements.ts'

const BITS = 2 ** 16
/** A range with more rows is not read: reading would take too long, and most bits would be set anyway. */
const MAX_ROWS_SCANNED = 8_192

const OF_RANGE = 'select h from identities where h >= ? and h < ? limit ?'

export class IdentityFilter {
  readonly #sql: Statements
  readonly #width: number
  readonly #ranges: (Uint8Array | 'too-many' | undefined)[] = []
  /** After this many rows, no further range is read in this commit, so that the first request after a start does not
      wait for all ranges. */
  #scanBudget = MAX_ROWS_SCANNED

  /** `width` is the number of `h` values in one range. */
  constructor(sql: Statements, width: number) {
    this.#sql = sql
    this.#width = width
  }

  /** `mayContain` returns false only if the index does not have `h`. */
  mayContain(h: number): boolean {
    const bits = this.#getRange(Math.floor(h / this.#width))
    if (bits === undefined || bits === 'too-many') return true
    const bit = this.#bitOf(h)
    return ((bits[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
  }

  /** `add` records that the index now has `h`. */
  add(h: number): void {
    const range = Math.floor(h / this.#width)
    this.#ranges[range] ??= this.#loadRange(range)
    this.#set(this.#ranges[range], h)
  }

  /** A rollback may have undone recorded additions, so it clears the bits. */
  afterTransaction(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') this.#ranges.length = 0
    this.#scanBudget = MAX_ROWS_SCANNED
  }

  #getRange(range: number): Uint8Array | 'too-many' | undefined {
    const known = this.#ranges[range]
    if (known !== undefined || this.#scanBudget <= 0) return known
    return (this.#ranges[range] = this.#loadRange(range))
  }

  #loadRange(range: number): Uint8Array | 'too-many' {
    const from = range * this.#width
    const rows = this.#sql.all(OF_RANGE, from, from + this.#width, MAX_ROWS_SCANNED + 1)
    this.#scanBudget -= rows.length
    if (rows.length > MAX_ROWS_SCANNED) return 'too-many'
    const bits = new Uint8Array(BITS / 8)
    for (const [h] of rows) this.#set(bits, number(h))
    return bits
  }

  #set(bits: Uint8Array | 'too-many' | undefined, h: number): void {
    if (bits === undefined || bits === 'too-many') return
    const bit = this.#bitOf(h)
    bits[bit >> 3] = (bits[bit >> 3] ?? 0) | (1 << (bit & 7))
  }

  #bitOf(h: number): number {
    return Math.floor((h % this.#width) / (this.#width / BITS))
  }
}
