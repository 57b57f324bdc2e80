// The counter of the store. A transaction takes numbers once it has its locks: who comes after it on the same lane gets
// greater ones, in whatever process.
import type { Db } from './part.ts'
import { number } from './values.ts'

/** What the sequence goes up by. */
const BLOCK = 1_000

export class Numbers {
  #blocks: { next: number; readonly end: number }[] = []
  #lacking = 0

  /** Below 0 while there are none: what is decided with these is thrown away. */
  readonly draw = (): number => {
    for (let block = this.#blocks[0]; block !== undefined; block = this.#blocks[0]) {
      if (block.next < block.end) return block.next++
      this.#blocks.shift()
    }
    return -++this.#lacking
  }

  again(): void {
    this.#lacking = 0
  }

  get isLacking(): boolean {
    return this.#lacking > 0
  }

  /** As many as were asked for in vain. */
  async load(db: Db): Promise<void> {
    if (this.#lacking === 0) return
    const rows = await db.rows(`select nextval('numbers') from generate_series(1, $1)`, [
      Math.ceil(this.#lacking / BLOCK),
    ])
    this.#blocks.push(...rows.map((row) => ({ next: number(row[0]), end: number(row[0]) + BLOCK })))
  }
}
