// Puts a limit of 3 calls per second under load, with an event loop that stalls now and then. Compares the calls that arrive at the
// receiver with what an exact limiter could have sent.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice, type Duration } from '../../src/index.ts'
import { rounded } from './folder.ts'
import { receiver, type Receiver } from './receiver.ts'

export const RATE = 3
export const PER = 1_000

export interface LimitLoad {
  /** Either this many runs wait at all times, more than the limit allows, or this many are published at once at intervals. */
  readonly demand: { readonly waiting: number } | { readonly burst: number; readonly every: number }
  readonly ms: number
  /** When the event loop is blocked, from the start of the load, and for how long each time. */
  readonly stalls: readonly number[]
  readonly stall: number
  /** An option of the limit: runs with a later slot are deferred (M6). */
  readonly maxWait?: Duration
  readonly folder: string
}

export interface LimitFigure {
  /** Calls that arrived by the end of the load. */
  readonly made: number
  /** The maximum number of arrivals in any window of one second, over the load and its end. */
  readonly mostInASecond: number
  /** The smallest time between a call and the third after it, in ms: below 1,000 the limit was violated. */
  readonly closest: number
  /** The same at the sender, when it hands calls to `fetch`, by its own clock: the limit itself is responsible for this (M1). */
  readonly closestHanded: number
  /** How late the receiver's own clock was read at most, in ms. */
  readonly receiverLag: number
  /** How many calls came less than a second after the third before them. */
  readonly broken: number
  /** What an exact limiter could have made without the stalls, and with them; and the share that was made. */
  readonly allowedOfAllTime: number
  readonly shareOfAllTime: number
  readonly allowed: number
  readonly share: number
  readonly stalledMs: number
  /** Failed handlers: none is expected. */
  readonly failed: number
  /** How often a run was deferred, because its slot was too far away (M6). */
  readonly putOff: number
}

interface Stall {
  readonly from: number
  readonly to: number
}

const TOP_UP_EVERY = 250

export async function underLimit(load: LimitLoad): Promise<LimitFigure> {
  const other = await receiver()
  try {
    return await new Sender(load, other).send()
  } finally {
    other.stop()
  }
}

class Sender {
  readonly #load: LimitLoad
  readonly #other: Receiver
  readonly #app: Sluice
  readonly #stalls: Stall[] = []
  /** When each run was requested. */
  readonly #asked: number[] = []
  /** When each call was handed over. */
  readonly #handed: number[] = []
  #ended = 0
  #failed = 0
  #putOff = 0
  #began = 0

  constructor(load: LimitLoad, other: Receiver) {
    this.#load = load
    this.#other = other
    this.#app = new Sluice({ store: `sqlite:${join(load.folder, 'limit.db')}`, log: false, shutdownTimeout: '2s' })
    const api = this.#app.limit('api', { rate: RATE, per: `${PER}ms`, maxWait: load.maxWait ?? '10s' })
    this.#app.flow('call', {
      on: 'call',
      run: async () => {
        const response = await api.fetch(other.url)
        await response.text()
        this.#ended++
      },
    })
    this.#app.on('run.deferred', () => this.#putOff++)
    this.#app.on('run.retry', () => this.#failed++)
    this.#app.on('run.dead', () => this.#failed++)
  }

  async send(): Promise<LimitFigure> {
    const { fetch } = globalThis
    globalThis.fetch = (...call) => {
      this.#handed.push(this.#now())
      return fetch(...call)
    }
    try {
      return await this.#send()
    } finally {
      globalThis.fetch = fetch
    }
  }

  async #send(): Promise<LimitFigure> {
    const { ms, stalls } = this.#load
    await this.#app.start()
    this.#began = performance.now()
    const timers = stalls.map((at) => setTimeout(() => this.#stall(), at))
    await this.#demand()
    const made = await this.#other.howMany()
    for (const timer of timers) clearTimeout(timer)
    const failed = this.#failed
    await this.#app.stop()
    const { arrivals, lag } = await this.#other.what()
    const allowed = exactCalls(this.#asked, this.#stalls, ms)
    const allowedOfAllTime = exactCalls(this.#planned(), [], ms)
    return {
      made,
      mostInASecond: mostInAWindow(arrivals),
      closest: rounded(Math.min(...gaps(arrivals))),
      closestHanded: rounded(Math.min(...gaps(this.#handed))),
      receiverLag: rounded(lag),
      broken: gaps(arrivals).filter((gap) => gap < PER).length,
      allowedOfAllTime,
      shareOfAllTime: rounded(made / allowedOfAllTime, 3),
      allowed,
      share: rounded(made / allowed, 3),
      stalledMs: Math.round(this.#stalls.reduce((sum, { from, to }) => sum + to - from, 0)),
      failed,
      putOff: this.#putOff,
    }
  }

  /** Runs the load to its end. */
  async #demand(): Promise<void> {
    const { demand, ms } = this.#load
    let next = 0
    while (this.#now() < ms) {
      if ('waiting' in demand) {
        await this.#ask(demand.waiting - (this.#asked.length - this.#ended))
        next += TOP_UP_EVERY
      } else {
        await this.#ask(demand.burst)
        next += demand.every
      }
      await sleep(Math.max(0, Math.min(next, ms) - this.#now()))
    }
  }

  async #ask(runs: number): Promise<void> {
    if (runs <= 0) return
    const at = this.#now()
    for (let n = 0; n < runs; n++) this.#asked.push(at)
    await this.#app.publish(Array.from({ length: runs }, () => ({ type: 'call' })))
  }

  /** When the runs would have been requested by an event loop that is never blocked. */
  #planned(): readonly number[] {
    const { demand, ms } = this.#load
    if ('waiting' in demand) return Array.from({ length: RATE * (ms / PER + 1) }, () => 0)
    const bursts = Array.from({ length: Math.ceil(ms / demand.every) }, (_, n) => n * demand.every)
    return bursts.flatMap((at) => Array.from({ length: demand.burst }, () => at))
  }

  #stall(): void {
    const from = this.#now()
    while (this.#now() < from + this.#load.stall);
    this.#stalls.push({ from, to: this.#now() })
  }

  #now(): number {
    return performance.now() - this.#began
  }
}

/**
 * How many calls an exact limiter makes before the end: each as soon as it is requested, at least a second after the third before
 * it, and never during a stall. It needs no margin and takes no time, so no limiter can make more.
 */
export function exactCalls(asked: readonly number[], stalls: readonly Stall[], end: number): number {
  const calls: number[] = []
  for (const wish of asked) {
    let at = Math.max(wish, calls.at(-1) ?? 0, (calls.at(-RATE) ?? -PER) + PER)
    for (const { from, to } of stalls) if (at >= from && at < to) at = to
    if (at >= end) break
    calls.push(at)
  }
  return calls.length
}

/** From each call to the third after it: a window with more calls than the rate starts with one and ends with the other. */
export function gaps(arrivals: readonly number[]): readonly number[] {
  return arrivals.slice(RATE).map((at, n) => at - (arrivals[n] ?? at))
}

/** Half open: two calls exactly one second apart are not in one window. */
export function mostInAWindow(arrivals: readonly number[]): number {
  let first = 0
  return arrivals.reduce((most, at, n) => {
    while ((arrivals[first] ?? at) <= at - PER) first++
    return Math.max(most, n - first + 1)
  }, 0)
}
