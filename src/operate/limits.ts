// What a person can do to a limit: see how it stands, pause one for every process, and let it go on.
import { NEVER, type Millis } from '../clock.ts'
import type { Limit } from '../limit/limit.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { AnyListener } from '../observe/events.ts'
import type { LimitStats, RegulateCall, Store } from '../store/contract/index.ts'
import type { Page } from './lanes.ts'

export interface LimitView {
  readonly name: string
  /** By this app; else it is another's, or was. One of a key is declared with the limit it is of. */
  readonly declared: boolean
  /** Raised by every pause; 0 until it is first used. */
  readonly epoch: number
  /** Undefined: it is not paused. */
  readonly pausedUntil: Millis | undefined
  /** As this app declares them; undefined of one that it does not. A burst of 0 is an exact window. */
  readonly rate: number | undefined
  readonly per: Millis | undefined
  readonly burst: number | undefined
  /** How many times as long `per` is now, since the other side refused; undefined: as declared. */
  readonly stretch: number | undefined
  /** The last moment that was given, or told, to somebody who waits for a slot. Undefined: nobody waits. */
  readonly busyUntil: Millis | undefined
}

export interface LimitsParts {
  readonly store: () => Promise<Store>
  readonly declared: ReadonlyMap<string, Limit>
  readonly emit: AnyListener
}

export class Limits {
  readonly #parts: LimitsParts

  constructor(parts: LimitsParts) {
    this.#parts = parts
  }

  /** By name: all that are declared, and up to 1,000 that somebody has used lately. `cursor` is the last name. */
  async list(cursor = '', n = 100): Promise<Page<LimitView>> {
    const all = (await this.#all()).filter(({ name }) => name > cursor)
    const items = all.slice(0, n)
    return { items, next: all.length > n ? items.at(-1)?.name : undefined }
  }

  async show(name: string): Promise<LimitView | undefined> {
    return (await this.#all()).find((limit) => limit.name === name) ?? this.#fresh(name)
  }

  /** For every process. `missing`: nobody has such a limit. */
  async pause(name: string, how: { readonly for: Duration }): Promise<'ok' | 'missing'> {
    const duration = Math.min(millis(how.for, 'limits: for'), NEVER)
    const limit = this.#declared(name)
    if (limit !== undefined) await limit.pause(duration)
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      const { pausedFor } = await this.#regulate({ name, act: { kind: 'pause', for: duration, slow: false } })
      this.#parts.emit('limit.paused', { limit: name, ms: pausedFor })
    }
    return 'ok'
  }

  /** Ends a pause, and the slowness after one. */
  async resume(name: string): Promise<'ok' | 'missing'> {
    const limit = this.#declared(name)
    if (limit !== undefined) await limit.resume()
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      await this.#regulate({ name, act: { kind: 'resume' } })
      this.#parts.emit('limit.resumed', { limit: name })
    }
    return 'ok'
  }

  #declared(name: string): Limit | undefined {
    const { own, key } = partsOf(name)
    const limit = this.#parts.declared.get(own)
    if (key === undefined) return limit
    return key === '' ? undefined : limit?.per(key)
  }

  async #isKnown(name: string): Promise<boolean> {
    const store = await this.#parts.store()
    return (await store.stats()).limits.some((limit) => limit.name === name)
  }

  async #regulate(call: RegulateCall): ReturnType<Store['regulate']> {
    const store = await this.#parts.store()
    return store.regulate(call)
  }

  #fresh(name: string): LimitView | undefined {
    return this.#declared(name) === undefined
      ? undefined
      : this.#view({ name, epoch: 0, pausedUntil: 0, last: 0, stretch: 1 }, 0)
  }

  #view({ name, epoch, pausedUntil, last, stretch }: LimitStats, now: Millis): LimitView {
    const { rate, per, burst } = this.#parts.declared.get(partsOf(name).own)?.numbers ?? NOT_OURS
    return {
      name,
      declared: rate !== undefined,
      epoch,
      pausedUntil: pausedUntil > now ? pausedUntil : undefined,
      rate,
      per,
      burst,
      stretch: stretch > 1 ? stretch : undefined,
      busyUntil: last > now ? last : undefined,
    }
  }

  async #all(): Promise<readonly LimitView[]> {
    const store = await this.#parts.store()
    const { limits, now } = await store.stats()
    const used = limits.map((limit) => this.#view(limit, now))
    const known = new Set(used.map(({ name }) => name))
    const unused = [...this.#parts.declared.keys()].filter((name) => !known.has(name))
    const all = [...used, ...unused.flatMap((name) => this.#fresh(name) ?? [])]
    return all.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  }
}

const NOT_OURS: { readonly [N in keyof Limit['numbers']]: undefined } = {
  rate: undefined,
  per: undefined,
  burst: undefined,
}

/** What stands before the first slash is the limit's own name, and what comes after it a key. */
function partsOf(name: string): { readonly own: string; readonly key: string | undefined } {
  const slash = name.indexOf('/')
  return slash < 0 ? { own: name, key: undefined } : { own: name.slice(0, slash), key: name.slice(slash + 1) }
}
