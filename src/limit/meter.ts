// `LimitMeter` counts the calls that this process made under each limit, by flow, and remembers why limits were paused.
import type { Clock, Millis } from '../clock.ts'

export interface LimitPause {
  readonly at: Millis
  readonly ms: Millis
  /** A rejected call, a call of `limit.pause` in code, or an operator. */
  readonly cause: 'response' | 'code' | 'operator'
  /** The status of the response, and the URL of the request without its query. */
  readonly status?: number
  readonly url?: string
  /** The flow whose run got the response. */
  readonly flow?: string
  readonly by?: string
}

export interface LimitSpending {
  readonly step: Millis
  readonly from: Millis
  /** The largest first. `flow` is '' for calls outside of runs. */
  readonly spenders: readonly { readonly flow: string; readonly calls: readonly number[]; readonly total: number }[]
  /** The newest first. */
  readonly pauses: readonly LimitPause[]
}

const STEP: Millis = 15_000
/** The steps of 15 minutes. */
const STEPS = 60
const MAX_LIMITS = 500
const MAX_FLOWS = 50
const MAX_PAUSES = 20
const MAX_URL = 200
/** An operator pauses a limit through the same call as code, and notes it right after. */
const SAME_PAUSE: Millis = 100

interface Metered {
  /** Calls by step and flow. */
  readonly steps: Map<number, Map<string, number>>
  readonly pauses: LimitPause[]
}

export class LimitMeter {
  readonly #clock: Pick<Clock, 'now'>
  readonly #limits = new Map<string, Metered>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  countCall(limits: readonly { readonly name: string; readonly cost: number }[], flow: string): void {
    const step = Math.floor(this.#clock.now() / STEP)
    for (const { name, cost } of limits) {
      const metered = this.#find(name)
      if (metered === undefined) continue
      let flows = metered.steps.get(step)
      if (flows === undefined) {
        metered.steps.set(step, (flows = new Map()))
        for (const old of metered.steps.keys()) if (old <= step - STEPS) metered.steps.delete(old)
      }
      if (flows.size < MAX_FLOWS || flows.has(flow)) flows.set(flow, (flows.get(flow) ?? 0) + cost)
    }
  }

  notePause(name: string, pause: Omit<LimitPause, 'at'>): void {
    const pauses = this.#find(name)?.pauses
    const at = this.#clock.now()
    if (pauses === undefined) return
    const { url, ...rest } = pause
    if (pause.cause === 'operator' && at - (pauses[0]?.at ?? 0) < SAME_PAUSE) pauses.shift()
    pauses.unshift({ at, ...rest, ...(url !== undefined && { url: withoutSecrets(url) }) })
    pauses.splice(MAX_PAUSES)
  }

  /** `read` returns the last 15 minutes; the last step is the current one. */
  read(name: string): LimitSpending {
    const { steps = new Map<number, Map<string, number>>(), pauses = [] } = this.#limits.get(name) ?? {}
    const first = Math.floor(this.#clock.now() / STEP) - STEPS + 1
    const flows = new Map<string, number[]>()
    for (const [step, calls] of steps) {
      if (step < first) continue
      for (const [flow, count] of calls) {
        const counts = flows.get(flow) ?? Array.from({ length: STEPS }, () => 0)
        counts[step - first] = count
        flows.set(flow, counts)
      }
    }
    const spenders = Array.from(flows, ([flow, calls]) => ({ flow, calls, total: calls.reduce((a, b) => a + b, 0) }))
    return {
      step: STEP,
      from: first * STEP,
      spenders: spenders.toSorted((one, other) => other.total - one.total),
      pauses,
    }
  }

  /** `findUsedShare` returns the share of the rate that this process used over the last minute, or over `per` if that is longer. */
  findUsedShare(name: string, { rate, per }: { readonly rate: number; readonly per: Millis }): number {
    const period = Math.min(Math.max(per, 4 * STEP), STEPS * STEP)
    const { from, spenders } = this.read(name)
    const since = Math.ceil((this.#clock.now() - period - from) / STEP)
    const calls = spenders.reduce((sum, one) => sum + one.calls.slice(Math.max(0, since)).reduce((a, b) => a + b, 0), 0)
    return Math.min(1, calls / ((rate * period) / per))
  }

  #find(name: string): Metered | undefined {
    const known = this.#limits.get(name)
    if (known !== undefined || this.#limits.size >= MAX_LIMITS) return known
    const metered = { steps: new Map(), pauses: [] }
    this.#limits.set(name, metered)
    return metered
  }
}

/** A query may contain a key of the API. */
function withoutSecrets(url: string): string {
  const parsed = URL.parse(url)
  return parsed === null ? '' : `${parsed.origin}${parsed.pathname}`.slice(0, MAX_URL)
}
