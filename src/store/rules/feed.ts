// The latest changes, for live views: a ring in memory. A reader that is too slow is told that it missed some.
import type { Change } from '../contract/index.ts'
import type { Note } from './work.ts'

const KEPT = 4_096

export class Feed {
  /** `missed`: something was here that nobody has. */
  readonly #ring: (Note | 'missed' | undefined)[] = Array.from({ length: KEPT })
  #last = 0

  add(notes: readonly (Note | 'missed')[]): void {
    for (const note of notes) {
      this.#last++
      this.#ring[this.#last % KEPT] = note
    }
  }

  after(seq: number, n: number): { changes: Change[]; next: number; skipped: boolean } {
    const oldest = Math.max(1, this.#last - KEPT + 1)
    const from = Math.max(seq + 1, oldest)
    const changes: Change[] = []
    let skipped = from > seq + 1
    let next = Math.max(seq, from - 1)
    for (; next < this.#last && changes.length < n; next++) {
      const note = this.#ring[(next + 1) % KEPT]
      if (note === 'missed') skipped = true
      else if (note !== undefined) changes.push({ ...note, seq: next + 1 })
    }
    return { changes, next, skipped }
  }
}
