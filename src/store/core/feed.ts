// `ChangeFeed` is a ring buffer of the latest changes, for live views. A reader that is too slow learns that it
// missed some.
import type { FeedEntry } from '../contract/index.ts'
import type { NewFeedEntry } from './commit-context.ts'

const CAPACITY = 4_096

export class ChangeFeed {
  /** `missed` marks changes of another process that did not arrive. */
  readonly #ring: (NewFeedEntry | 'missed' | undefined)[] = Array.from({ length: CAPACITY })
  #last = 0

  add(notes: readonly (NewFeedEntry | 'missed')[]): void {
    for (const note of notes) {
      this.#last++
      this.#ring[this.#last % CAPACITY] = note
    }
  }

  readAfter(seq: number, n: number): { changes: FeedEntry[]; next: number; skipped: boolean } {
    const oldest = Math.max(1, this.#last - CAPACITY + 1)
    const from = Math.max(seq + 1, oldest)
    const changes: FeedEntry[] = []
    let skipped = from > seq + 1
    let next = Math.max(seq, from - 1)
    for (; next < this.#last && changes.length < n; next++) {
      const note = this.#ring[(next + 1) % CAPACITY]
      if (note === 'missed') skipped = true
      else if (note !== undefined) changes.push({ ...note, seq: next + 1 })
    }
    return { changes, next, skipped }
  }
}
