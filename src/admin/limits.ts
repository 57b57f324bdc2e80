// `Limits` shows the limits to operators, and pauses or resumes one for every process.
import { NEVER, type Millis } from '../clock.ts'
import type { Limit } from '../limit/limit.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { LimitStats, RegulateCall, Store } from '../store/contract/index.ts'
import type { Page } from './pages.ts'

export interface LimitView {
  readonly name: string
  /** Whether this app declares the limit. A limit from `limit.per(key)` counts as declared with its parent. */
  readonly declared: boolean
  /** Every pause raises it; 0 until the first use. */
  readonly epoch: number
  /** Undefined if the limit is not paused. */
  readonly pausedUntil: Millis | undefined
  /** The declared values; undefined if this app does not declare the limit. A burst of 0 is an exact window. */
  readonly rate: number | undefined
  readonly per: Millis | undefined
  readonly burst: number | undefined
  /** The factor by which `per` is longer since the other side sent a 429; undefined without one. */
  readonly stretch: number | undefined
  /** The time of the last slot that is reserved or promised. Undefined if no caller waits for one. */
  readonly busyUntil: Millis | undefined
}

export interface LimitAdminDependencies {
  readonly store: () => Promise<Store>
  readonly declared: ReadonlyMap<string, Limit>
  readonly emit: AnyListener
}

export class Limits {
  readonly #deps: LimitAdminDependencies

  constructor(deps: LimitAdminDependencies) {
    this.#deps = deps
  }

  /** `list` returns, by name, all declared limits and up to 1,000 recently used ones. `cursor` is the last name. */
  async list(cursor = '', n = 100): Promise<Page<LimitView>> {
    const all = (await this.#listAll()).filter(({ name }) => name > cursor)
    const items = all.slice(0, n)
    return { items, next: all.length > n ? items.at(-1)?.name : undefined }
  }

  async show(name: string): Promise<LimitView | undefined> {
    return (await this.#listAll()).find((limit) => limit.name === name) ?? this.#unusedView(name)
  }

  /** `pause` applies to every process. It returns `missing` for an unknown limit. */
  async pause(name: string, how: { readonly for: Duration }): Promise<'ok' | 'missing'> {
    const duration = Math.min(parseDuration(how.for, 'limits: for'), NEVER)
    const limit = this.#findDeclared(name)
    if (limit !== undefined) await limit.pause(duration)
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      const { pausedFor } = await this.#regulate({ name, act: { kind: 'pause', for: duration, slow: false } })
      this.#deps.emit('limit.paused', { limit: name, ms: pausedFor })
    }
    return 'ok'
  }

  /** `resume` ends a pause and the slower rate after it. */
  async resume(name: string): Promise<'ok' | 'missing'> {
    const limit = this.#findDeclared(name)
    if (limit !== undefined) await limit.resume()
    else if (!(await this.#isKnown(name))) return 'missing'
    else {
      await this.#regulate({ name, act: { kind: 'resume' } })
      this.#deps.emit('limit.resumed', { limit: name })
    }
    return 'ok'
  }

  #findDeclared(name: string): Limit | undefined {
    const { own, key } = splitLimitName(name)
    const limit = this.#deps.declared.get(own)
    if (key === undefined) return limit
    return key === '' ? undefined : limit?.per(key)
  }

  async #isKnown(name: string): Promise<boolean> {
    const store = await this.#deps.store()
    return (await store.stats()).limits.some((limit) => limit.name === name)
  }

  async #regulate(call: RegulateCall): ReturnType<Store['regulate']> {
    const store = await this.#deps.store()
    return store.regulate(call)
  }

  #unusedView(name: string): LimitView | undefined {
    return this.#findDeclared(name) === undefined
      ? undefined
      : this.#toView({ name, epoch: 0, pausedUntil: 0, last: 0, stretch: 1 }, 0)
  }

  #toView({ name, epoch, pausedUntil, last, stretch }: LimitStats, now: Millis): LimitView {
    const { rate, per, burst } = this.#deps.declared.get(splitLimitName(name).own)?.numbers ?? UNDECLARED_NUMBERS
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

  async #listAll(): Promise<readonly LimitView[]> {
    const store = await this.#deps.store()
    const { limits, now } = await store.stats()
    const used = limits.map((limit) => this.#toView(limit, now))
    const known = new Set(used.map(({ name }) => name))
    const unused = [...this.#deps.declared.keys()].filter((name) => !known.has(name))
    const all = [...used, ...unused.flatMap((name) => this.#unusedView(name) ?? [])]
    return all.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  }
}

const UNDECLARED_NUMBERS: { readonly [N in keyof Limit['numbers']]: undefined } = {
  rate: undefined,
  per: undefined,
  burst: undefined,
}

/** The text before the first slash is the name of the limit, and the rest is a key. */
function splitLimitName(name: string): { readonly own: string; readonly key: string | undefined } {
  const slash = name.indexOf('/')
  return slash < 0 ? { own: name, key: undefined } : { own: name.slice(0, slash), key: name.slice(slash + 1) }
}
