// `Counter` draws the numbers of a process: tickets, tokens, run numbers and the order of events. The numbers of one counter must grow
// over all processes, so a process uses a block only if no other process has drawn since, or if the transaction drew the block itself.

interface Block {
  readonly first: number
  readonly end: number
}

const NONE: Block = { first: 0, end: 0 }

/** How many numbers a commit draws for the next one. */
export const NUMBERS_PER_COMMIT = 2_000

export class Counter {
  #block: Block = NONE
  #next = 0
  #missing = 0
  /** Whether the block was drawn by the transaction itself, so that later draws of other processes do not matter. */
  #isOwn = false

  /** `draw` returns a negative number if the block is used up. The pass then has a miss. */
  readonly draw = (): number => {
    if (this.#next < this.#block.end) return ++this.#next
    return -++this.#missing
  }

  /** `isFresh` returns whether this transaction drew the number, so that no row with it exists yet. */
  isFresh(n: number): boolean {
    return n < 0 || (n > this.#block.first && n <= this.#block.end)
  }

  begin(): void {
    this.#isOwn = false
  }

  resetPass(): void {
    this.#next = this.#block.first
    this.#missing = 0
  }

  get hasMisses(): boolean {
    return this.#missing > 0
  }

  /** How many numbers the next load must draw. */
  get wanted(): number {
    return NUMBERS_PER_COMMIT + (this.#missing > 0 ? this.#missing + this.#block.end - this.#block.first : 0)
  }

  /** `last` is the last of `count` drawn numbers. */
  setBlock(last: number, count: number, isOwn: boolean): void {
    this.#block = { first: last - count, end: last }
    this.#isOwn = isOwn
  }

  /** The value that the counter must have at the commit: '' for any. */
  get expected(): string {
    return this.#isOwn || this.#next === this.#block.first ? '' : String(this.#block.end)
  }

  forget(): void {
    this.#block = NONE
    this.#isOwn = false
  }
}
