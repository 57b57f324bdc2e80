// `TransactionCounter` draws numbers from the counter of the store. A transaction draws after it has its locks, so a later
// transaction on the same lane gets greater numbers, in any process.
import type { Db } from './row-cache.ts'
import { number } from './values.ts'

/** The increment of the sequence. */
const BLOCK = 1_000
const NEXT = `select nextval('numbers') from generate_series(1, $1)`

interface NumberBlock {
  next: number
  readonly end: number
}

export class TransactionCounter {
  #blocks: readonly NumberBlock[] = []
  /** The blocks as the current pass leaves them. The next pass draws the same numbers again. */
  #passBlocks: NumberBlock[] = []
  #missing = 0

  /** `draw` returns a negative number if no number is loaded. The pass then has misses, and its decisions are discarded. */
  readonly draw = (): number => {
    for (let block = this.#passBlocks[0]; block !== undefined; block = this.#passBlocks[0]) {
      if (block.next < block.end) return block.next++
      this.#passBlocks.shift()
    }
    return -++this.#missing
  }

  resetPass(): void {
    this.#missing = 0
    this.#passBlocks = this.#blocks.map((block) => ({ ...block }))
  }

  get hasMisses(): boolean {
    return this.#missing > 0
  }

  /**
   * `load` draws new blocks with every load, because the load may have locked more: another transaction may have drawn greater
   * numbers before that lock. It draws as many blocks as the pass wanted so far.
   */
  async load(db: Db): Promise<void> {
    const wanted = this.#blocks.length + Math.ceil(this.#missing / BLOCK)
    const drawn = await db.query(NEXT, [Math.max(1, wanted)])
    this.#blocks = drawn.map((row) => ({ next: number(row[0]), end: number(row[0]) + BLOCK }))
  }
}
