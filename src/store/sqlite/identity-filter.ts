// Says of most new identities that the index cannot have them, without asking it. A range of the index is looked through
// once, when it is written to or first asked for; from then on one bit for each of its identities is kept.
import { number, type Statements } from './statements.ts'

const BITS = 2 ** 16
/** A range with more is not looked through: that would take longer than a moment, and the bits would tell little. */
const LOOKED_AT = 8_192

const OF_RANGE = 'select h from identities where h >= ? and h < ? limit ?'

export class IdentityFilter {
  readonly #sql: Statements
  readonly #width: number
  readonly #ranges: (Uint8Array | 'too-many' | undefined)[] = []
  /** No further look begins in this commit after so many rows: whoever comes first after a start must not wait for all ranges. */
  #mayLookAt = LOOKED_AT

  /** `width`: how many values of `h` a range has. */
  constructor(sql: Statements, width: number) {
    this.#sql = sql
    this.#width = width
  }

  /** False only if the index does not have it. */
  mayHave(h: number): boolean {
    const bits = this.#lookedThrough(Math.floor(h / this.#width))
    if (bits === undefined || bits === 'too-many') return true
    const bit = this.#bitOf(h)
    return ((bits[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
  }

  /** The index now has it too. */
  add(h: number): void {
    const range = Math.floor(h / this.#width)
    this.#ranges[range] ??= this.#look(range)
    this.#set(this.#ranges[range], h)
  }

  /** After a rollback what it was told may not be so. */
  letGo(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') this.#ranges.length = 0
    this.#mayLookAt = LOOKED_AT
  }

  #lookedThrough(range: number): Uint8Array | 'too-many' | undefined {
    const known = this.#ranges[range]
    if (known !== undefined || this.#mayLookAt <= 0) return known
    return (this.#ranges[range] = this.#look(range))
  }

  #look(range: number): Uint8Array | 'too-many' {
    const from = range * this.#width
    const rows = this.#sql.all(OF_RANGE, from, from + this.#width, LOOKED_AT + 1)
    this.#mayLookAt -= rows.length
    if (rows.length > LOOKED_AT) return 'too-many'
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
