// How many requests an address, or all of a source, may send: beyond that they are told when to come again (R4).
// Counted in each process by itself: this guards the process; rates that are promised to others are limits.
import type { Millis } from '../clock.ts'

interface Count {
  /** Of the window that began at `since`, and of the one before. */
  now: number
  before: number
  since: Millis
}

/** Addresses that are remembered; the one that was idle longest makes room. */
const REMEMBERED = 20_000

export class RequestRate {
  readonly #rate: number
  readonly #per: Millis
  readonly #counts = new Map<string, Count>()

  constructor(rate: number, per: Millis) {
    this.#rate = rate
    this.#per = per
  }

  /** Undefined: it may. Else how long until it makes sense to ask again. `now` is monotonic. */
  refuses(who: string, now: Millis): Millis | undefined {
    if (this.#rate === Infinity) return undefined
    const count = this.#countOf(who, now)
    const passed = (now - count.since) / this.#per
    // The window slides: of the one before, what still lies within it counts.
    if (count.before * (1 - passed) + count.now >= this.#rate) return this.#waitOf(count, passed)
    count.now++
    return undefined
  }

  /** Who comes again then is let in, if nobody else of it came in between. */
  #waitOf({ now, before }: Count, passed: number): Millis {
    const enough = now >= this.#rate ? 2 - this.#rate / now : 1 - (this.#rate - now) / before
    return Math.ceil(this.#per * (enough - passed)) + 1
  }

  #countOf(who: string, now: Millis): Count {
    const known = this.#counts.get(who)
    this.#counts.delete(who)
    const windows = known === undefined ? 2 : Math.floor((now - known.since) / this.#per)
    const count =
      known === undefined || windows >= 2
        ? { now: 0, before: 0, since: now }
        : windows === 1
          ? { now: 0, before: known.now, since: known.since + this.#per }
          : known
    this.#counts.set(who, count)
    if (this.#counts.size > REMEMBERED) this.#counts.delete(this.#counts.keys().next().value ?? '')
    return count
  }
}

/** Who has one IPv6 address has the whole network of it. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length)
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...after]
  return all.slice(0, 4).map(plain).join(':')
}

/** One group in one spelling, whichever a proxy forwards. */
function plain(group: string): string {
  return group.replace(/^0+(?=.)/, '').toLowerCase()
}
