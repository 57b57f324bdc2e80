// What happened, written down as it happens and apart from the store, so that the two can be held against each other.
import type { Millis } from 'sluice'
import { CallMeter } from './call-meter.ts'
import type { Facts } from './checks.ts'
import { briefly, type Life, type SeenEvent } from './life.ts'

/** What is known of one user beyond what waits in the store. */
export interface Past {
  readonly runs: number
  readonly last: string
}

const NOTHING_YET: Past = { runs: 0, last: '' }

export class Ledger {
  readonly calls: CallMeter = new CallMeter()
  readonly #since: Millis
  readonly #past = new Map<string, Past>()
  readonly #running = new Set<string>()
  /** +1 for a receipt, −1 for an end, gone at 0: what stays is open, or has ended more often than it came. */
  readonly #balance = new Map<string, number>()
  #latestDue: Millis = 0
  received = 0
  handled = 0
  runs = 0
  claims = 0
  retries = 0
  dead = 0
  lost = 0
  overlaps = 0
  mostAtOnce = 0
  inversions = 0

  /** Events that the store had before this moment are known to it alone. */
  constructor(since: Millis) {
    this.#since = since
  }

  get users(): Iterable<string> {
    return this.#past.keys()
  }

  past(user: string): Past {
    return this.#past.get(user) ?? NOTHING_YET
  }

  /** Events that ended without having come, or more often than they came. */
  get strays(): number {
    let strays = 0
    for (const balance of this.#balance.values()) if (balance < 0) strays++
    return strays
  }

  facts(): Omit<Facts, 'waitedBefore' | 'waiting' | 'dead'> {
    const { received, handled, strays, claims, overlaps, mostAtOnce, inversions } = this
    const { total: calls, most: mostCalls } = this.calls
    return { received, handled, strays, claims, overlaps, mostAtOnce, inversions, calls, mostCalls }
  }

  note(life: Life): void {
    switch (life.kind) {
      case 'received':
        this.received++
        this.#book(life.id, 1)
        return
      case 'due':
        return
      case 'claimed':
        this.#begin(life.user, life.due)
        break
      case 'called':
        this.calls.add(life.handed)
        break
      case 'done':
        this.runs++
        this.handled += life.events.length
        this.#end(life.user, life.events)
        break
      case 'dead':
        this.dead++
        this.#end(life.user, life.events)
        break
      case 'retry':
        this.retries++
        this.#end(life.user, [])
        break
      case 'released':
        this.#end(life.user, [])
        break
      case 'lost':
        this.lost++
        this.#end(life.user, [])
        break
    }
    const runs = this.past(life.user).runs + (life.kind === 'done' ? 1 : 0)
    this.#past.set(life.user, { runs, last: briefly(life) })
  }

  #begin(user: string, due: Millis): void {
    this.claims++
    if (this.#running.has(user)) this.overlaps++
    this.#running.add(user)
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#running.size)
    // A deadline is never set in the past. So one that is earlier than that of a lane served before it was already
    // there, and passed, when that lane was served: its turn came too late.
    if (due < this.#latestDue) this.inversions++
    this.#latestDue = Math.max(this.#latestDue, due)
  }

  #end(user: string, events: readonly SeenEvent[]): void {
    this.#running.delete(user)
    for (const event of events) if (event.arrived >= this.#since) this.#book(event.id, -1)
  }

  #book(id: string, by: number): void {
    const balance = (this.#balance.get(id) ?? 0) + by
    if (balance === 0) this.#balance.delete(id)
    else this.#balance.set(id, balance)
  }
}
