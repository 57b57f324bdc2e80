// Generates the load: people work on something for a while, with an event about every second, and then leave it. So most events
// arrive while the window of their key is open, and move its deadline back.
import type { EventInput } from '../../../src/index.ts'
import { Chance } from '../../sqlite/kill-load.ts'

export interface SessionsPlan {
  readonly seed: number
  /** Events a second, over all sessions. */
  readonly rate: number
  /** Events a second without a session, each in its own lane. */
  readonly alone: number
  readonly keys: number
}

interface Session {
  readonly key: string
  next: number
  left: number
}

const SHORTEST_GAP = 200
const LONGEST_GAP = 1_400
const FEWEST = 4
const USUAL_MOST = 20
/** Some sessions are so long that their window ends by its `max`. */
const LONG = 60
const LONG_SHARE = 0.05
const MEAN = LONG_SHARE * LONG + (1 - LONG_SHARE) * ((FEWEST + USUAL_MOST) / 2)
const SMALLEST_BODY = 500
const LARGEST_BODY = 4_000

export class Sessions {
  readonly #plan: SessionsPlan
  readonly #chance: Chance
  /** Bodies are slices of this text: random letters, which do not compress. */
  readonly #deadLetters: string
  #open: Session[] = []
  #sent = 0
  #begun = 0
  #sentAlone = 0

  constructor(plan: SessionsPlan) {
    this.#plan = plan
    this.#chance = new Chance(plan.seed)
    const random = Uint8Array.from({ length: 3 * 16_384 }, () => this.#chance.below(256))
    this.#deadLetters = Buffer.from(random).toString('base64')
  }

  /** The number of events so far, which are numbered from 0. */
  get sent(): number {
    return this.#sent
  }

  /** Returns the events since the last call; times are milliseconds since the first call. */
  until(now: number): readonly EventInput[] {
    this.#begin(now)
    const events: EventInput[] = []
    for (const session of this.#open) {
      while (session.left > 0 && session.next <= now) {
        events.push(this.#event('work', session.key))
        session.next += SHORTEST_GAP + this.#chance.below(LONGEST_GAP - SHORTEST_GAP)
        session.left--
      }
    }
    this.#open = this.#open.filter(({ left }) => left > 0)
    const alone = Math.floor((now * this.#plan.alone) / 1_000)
    for (; this.#sentAlone < alone; this.#sentAlone++) events.push(this.#event('note', ''))
    return events
  }

  #begin(now: number): void {
    const perSession = (1_000 * MEAN) / this.#plan.rate
    for (; this.#begun * perSession <= now; this.#begun++) {
      const left = this.#chance.happens(LONG_SHARE) ? LONG : FEWEST + this.#chance.below(USUAL_MOST - FEWEST + 1)
      const key = `key-${this.#chance.below(this.#plan.keys)}`
      this.#open.push({ key, next: this.#begun * perSession, left })
    }
  }

  #event(type: string, subject: string): EventInput {
    const length = SMALLEST_BODY + this.#chance.below(LARGEST_BODY - SMALLEST_BODY)
    const from = this.#chance.below(this.#deadLetters.length - length)
    return { type, subject, data: { n: this.#sent++, text: this.#deadLetters.slice(from, from + length) } }
  }
}
