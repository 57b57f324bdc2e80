// Hands on what happens, and sees to it that a lane is said to be due once, and before it is said to be claimed.
import type { Millis } from 'sluice'
import type { Life, Tell } from './life.ts'

export class News {
  readonly #hear: Tell
  readonly #told = new Map<string, Millis>()

  constructor(hear: Tell) {
    this.#hear = hear
  }

  readonly tell = (life: Life): void => {
    // Whoever watches for deadlines may not have looked since this one passed.
    if (life.kind === 'claimed') this.due(life.user, life.due, { events: life.events.length, position: 1 })
    this.#hear(life)
  }

  due(user: string, due: Millis, line: { readonly events: number; readonly position: number }): void {
    if (this.#told.get(user) === due) return
    this.#told.set(user, due)
    this.#hear({ kind: 'due', at: due, user, ...line })
  }
}
