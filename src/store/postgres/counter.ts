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
  readonly #reserve: CounterReserve
  readonly #isOptimistic: boolean
  #blocks: readonly NumberBlock[] = []
  /** The blocks as the current pass leaves them. The next pass draws the same numbers again. */
  #passBlocks: NumberBlock[] = []
  #missing = 0

  /** An optimistic append has no locks. It draws from the reserve of the process. */
  constructor(reserve: CounterReserve, isGuess: boolean) {
    this.#reserve = reserve
    this.#isOptimistic = isGuess
  }

  /** `draw` returns a negative number if no number is loaded. The pass then has misses, and its decisions are discarded. */
  readonly draw = (): number => {
    const drawn = this.#isOptimistic ? this.#reserve.draw() : drawFrom(this.#passBlocks)
    return drawn ?? -++this.#missing
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
   * numbers before that lock. It draws as many blocks as the pass wanted so far, plus what the reserve lacks.
   */
  async load(db: Db): Promise<void> {
    const wanted = this.#blocks.length + Math.ceil(this.#missing / BLOCK)
    const own = this.#isOptimistic ? 0 : Math.max(1, wanted)
    const all = own + this.#reserve.blocksWanted
    if (all === 0) return
    const drawn = (await db.query(NEXT, [all])).map((row) => ({ next: number(row[0]), end: number(row[0]) + BLOCK }))
    this.#blocks = drawn.slice(0, own)
    this.#reserve.add(drawn.slice(own))
  }

  /** `returnUnused` gives the unused numbers to the reserve once the transaction has decided. */
  returnUnused(): void {
    const last = this.#passBlocks.at(-1)
    if (last !== undefined) this.#reserve.returnBlock(last)
    this.#passBlocks = []
  }
}

/** `CounterReserve` holds numbers that are greater than any that this process has used. */
export class CounterReserve {
  #blocks: NumberBlock[] = []
  /** The reserve is only refilled after its first use. */
  #isUsed = false
  #last = 0

  draw(): number | undefined {
    this.#isUsed = true
    const drawn = drawFrom(this.#blocks)
    if (drawn !== undefined) this.#last = drawn
    return drawn
  }

  /**
   * `returnBlock` drops the blocks below the returned one, because the process has used greater numbers by now. For the same
   * reason it drops the returned block if a later number was already used.
   */
  returnBlock(block: NumberBlock): void {
    if (block.next <= this.#last) return
    this.#blocks = [block, ...this.#blocks.filter(({ next }) => next > block.next)]
  }

  /** `blocksWanted` returns how many blocks to load before the reserve runs out. */
  get blocksWanted(): number {
    const left = this.#blocks.reduce((sum, { next, end }) => sum + end - next, 0)
    return this.#isUsed && left < LOW ? REFILL : 0
  }

  add(blocks: readonly NumberBlock[]): void {
    this.#blocks.push(...blocks)
  }
}

const LOW = 5_000
const REFILL = 5

function drawFrom(from: NumberBlock[]): number | undefined {
  for (let block = from[0]; block !== undefined; block = from[0]) {
    if (block.next < block.end) return block.next++
    from.shift()
  }
  return undefined
}
