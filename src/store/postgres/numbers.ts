// The counter of the store. A transaction takes numbers once it has its locks: who comes after it on the same lane gets
// greater ones, in whatever process.
import type { Db } from './part.ts'
import { number } from './values.ts'

/** What the sequence goes up by. */
const BLOCK = 1_000
const NEXT = `select nextval('numbers') from generate_series(1, $1)`

interface Block {
  next: number
  readonly end: number
}

export class Numbers {
  readonly #reserve: Reserve
  readonly #isGuess: boolean
  #blocks: readonly Block[] = []
  /** Those of the pass, which are drawn again by the next one. */
  #drawable: Block[] = []
  #lacking = 0

  /** Who guesses has no locks, and draws from what is left of the process's numbers. */
  constructor(reserve: Reserve, isGuess: boolean) {
    this.#reserve = reserve
    this.#isGuess = isGuess
  }

  /** Below 0 while there are none: what is decided with these is thrown away. */
  readonly draw = (): number => {
    const drawn = this.#isGuess ? this.#reserve.draw() : drawnFrom(this.#drawable)
    return drawn ?? -++this.#lacking
  }

  again(): void {
    this.#lacking = 0
    this.#drawable = this.#blocks.map((block) => ({ ...block }))
  }

  get isLacking(): boolean {
    return this.#lacking > 0
  }

  /**
   * With all that is loaded, for that may have locked more: those from before may be smaller than what somebody else had meanwhile. As
   * many as would have been wanted so far, and what the process lacks.
   */
  async load(db: Db): Promise<void> {
    const wanted = this.#blocks.length + Math.ceil(this.#lacking / BLOCK)
    const own = this.#isGuess ? 0 : Math.max(1, wanted)
    const all = own + this.#reserve.wants
    if (all === 0) return
    const drawn = (await db.rows(NEXT, [all])).map((row) => ({ next: number(row[0]), end: number(row[0]) + BLOCK }))
    this.#blocks = drawn.slice(0, own)
    this.#reserve.add(drawn.slice(own))
  }

  /** What is left when all is decided. */
  giveBack(): void {
    const last = this.#drawable.at(-1)
    if (last !== undefined) this.#reserve.keep(last)
    this.#drawable = []
  }
}

/** Numbers of a process that are greater than any it has used. */
export class Reserve {
  #blocks: Block[] = []
  /** Nobody else fetches what is not used. */
  #isUsed = false
  #last = 0

  draw(): number | undefined {
    this.#isUsed = true
    const drawn = drawnFrom(this.#blocks)
    if (drawn !== undefined) this.#last = drawn
    return drawn
  }

  /** Those before it are older than what the process has used by now, and so is it if a later one was used already. */
  keep(block: Block): void {
    if (block.next <= this.#last) return
    this.#blocks = [block, ...this.#blocks.filter(({ next }) => next > block.next)]
  }

  /** How many blocks, before it runs out. */
  get wants(): number {
    const left = this.#blocks.reduce((sum, { next, end }) => sum + end - next, 0)
    return this.#isUsed && left < LOW ? REFILL : 0
  }

  add(blocks: readonly Block[]): void {
    this.#blocks.push(...blocks)
  }
}

const LOW = 5_000
const REFILL = 5

function drawnFrom(from: Block[]): number | undefined {
  for (let block = from[0]; block !== undefined; block = from[0]) {
    if (block.next < block.end) return block.next++
    from.shift()
  }
  return undefined
}
