// The latest changes, for live views: a ring in memory. A reader that is too slow is told that it missed some.
import type { Change } from '../contract/index.ts'
import type { Note } from './work.ts'

const KEPT = 4_096

export class Feed {
  readonly #ring: (Note | undefined)[] = Array.from({ length: KEPT })
  #last = 0

  add(notes: readonly Note[]): void {
    for (const note of notes) {
      this.#last++
      this.#ring[this.#last % KEPT] = note
    }
  }

  after(seq: number, n: number): { changes: Change[]; next: number; skipped: boolean } {
    const oldest = Math.max(1, this.#last - KEPT + 1)
    const from = Math.max(seq + 1, oldest)
    const changes: Change[] = []
    for (let at = from; at <= this.#last && changes.length < n; at++) {
      const note = this.#ring[at % KEPT]
      if (note !== undefined) changes.push({ ...note, seq: at })
    }
    return { changes, next: changes.at(-1)?.seq ?? Math.max(seq, from - 1), skipped: from > seq + 1 }
  }
}
