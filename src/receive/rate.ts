// `RequestRateLimiter` bounds the requests of an address or a source; beyond it, senders get a `Retry-After` (R4). Each
// process counts for itself: this protects the process. Rates promised to other systems are limits.
import type { Millis } from '../clock.ts'

interface WindowCount {
  /** The requests in the window that began at `since`, and in the window before it. */
  now: number
  before: number
  since: Millis
}

/** The number of remembered addresses. The one that was idle for the longest time is dropped first. */
const MAX_REMEMBERED = 20_000

export class RequestRateLimiter {
  readonly #rate: number
  readonly #per: Millis
  readonly #counts = new Map<string, WindowCount>()

  constructor(rate: number, per: Millis) {
    this.#rate = rate
    this.#per = per
  }

  /** `count` returns undefined if the request is allowed, otherwise the time after which a retry makes sense. `now`
      is monotonic. */
  count(caller: string, now: Millis): Millis | undefined {
    if (this.#rate === Infinity) return undefined
    const count = this.#currentCount(caller, now)
    const passed = (now - count.since) / this.#per
    // The window slides: the previous window counts in proportion to its overlap.
    if (count.before * (1 - passed) + count.now >= this.#rate) return this.#delayOf(count, passed)
    count.now++
    return undefined
  }

  /** `#delayOf` returns when the next request is allowed, unless another request of the same sender comes first. */
  #delayOf({ now, before }: WindowCount, passed: number): Millis {
    const enough = now >= this.#rate ? 2 - this.#rate / now : 1 - (this.#rate - now) / before
    return Math.ceil(this.#per * (enough - passed)) + 1
  }

  #currentCount(caller: string, now: Millis): WindowCount {
    const known = this.#counts.get(caller)
    this.#counts.delete(caller)
    const windows = known === undefined ? 2 : Math.floor((now - known.since) / this.#per)
    const count =
      known === undefined || windows >= 2
        ? { now: 0, before: 0, since: now }
        : windows === 1
          ? { now: 0, before: known.now, since: known.since + this.#per }
          : known
    this.#counts.set(caller, count)
    if (this.#counts.size > MAX_REMEMBERED) this.#counts.delete(this.#counts.keys().next().value ?? '')
    return count
  }
}

/** `toNetwork` returns the /64 network of an IPv6 address: its owner can use any address in it. */
export function toNetwork(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length)
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...after]
  return all.slice(0, 4).map(normalizeGroup).join(':')
}

/** `normalizeGroup` returns one spelling for a group, since proxies forward different ones. */
function normalizeGroup(group: string): string {
  return group.replace(/^0+(?=.)/, '').toLowerCase()
}
