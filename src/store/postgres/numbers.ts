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

/** Numbers of a process, for what needs no order among processes: events. */
export class SeqReserve {
  #next = 0
  #end = 0

  async take(db: Db, n: number): Promise<readonly number[]> {
    if (this.#end - this.#next >= n) return this.#some(n)
    const rows = await db.rows(`select nextval('numbers') from generate_series(1, $1)`, [Math.ceil(n / BLOCK)])
    const firsts = rows.map((row) => number(row[0]))
    const last = firsts.at(-1) ?? 0
    const isWhole = firsts.every((first, at) => at === 0 || first === (firsts[at - 1] ?? 0) + BLOCK)
    if (!isWhole) return firsts.flatMap((first) => Array.from({ length: BLOCK }, (_, at) => first + at)).slice(0, n)
    ;[this.#next, this.#end] = [firsts[0] ?? 0, last + BLOCK]
    return this.#some(n)
  }

  #some(n: number): readonly number[] {
    const first = this.#next
    this.#next += n
    return Array.from({ length: n }, (_, at) => first + at)
  }
}
