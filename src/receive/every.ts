// Schedules are a way in: each tick is an event with the dedupe id `name@tick`, so that however many processes tick, one counts.
import { Cron } from 'croner'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { EventInput } from '../model/event-input.ts'

export const EVERY = 'sluice.every'

export interface Schedule {
  readonly name: string
  /** The first tick after a moment. */
  readonly after: (moment: Millis) => Millis
  /** The last tick at or before a moment; undefined if there was none since `since`. */
  readonly last: (moment: Millis, since: Millis) => Millis | undefined
}

const DURATION = /^\d+(\.\d+)?(ms|s|m|h|d)$/
const LEAST = 100

/** `'5m'`, or a cron expression, in UTC unless a time zone is said. */
export function schedule(name: string, when: string, timeZone = 'UTC'): Schedule {
  return DURATION.test(when) ? byInterval(name, when) : byCron(name, when, timeZone)
}

function byInterval(name: string, when: string): Schedule {
  const every = millis(when as Duration, `every(${JSON.stringify(name)})`)
  if (every < LEAST)
    throw new SluiceError('CONFIG_INVALID', `every(${JSON.stringify(name)}) is ${every} ms; at least ${LEAST}.`)
  const tickBefore = (moment: Millis): Millis => Math.floor(moment / every) * every
  return {
    name,
    after: (moment) => tickBefore(moment) + every,
    last: (moment, since) => (tickBefore(moment) > since ? tickBefore(moment) : undefined),
  }
}

function byCron(name: string, when: string, timeZone: string): Schedule {
  const cron = cronOf(name, when, timeZone)
  return {
    name,
    after: (moment) => cron.nextRun(new Date(moment))?.getTime() ?? Infinity,
    last(moment, since) {
      // Ticks are at least a second apart, and mostly further: looking back step by step finds the last one.
      for (let back = 60_000; ; back *= 4) {
        let tick = cron.nextRun(new Date(Math.max(since, moment - back)))?.getTime()
        if (tick !== undefined && tick <= moment) {
          for (let next = tick; next <= moment; next = cron.nextRun(new Date(tick))?.getTime() ?? Infinity) tick = next
          return tick
        }
        if (moment - back <= since) return undefined
      }
    },
  }
}

function cronOf(name: string, when: string, timeZone: string): Cron {
  try {
    const cron = new Cron(when, { paused: true, timezone: timeZone })
    // It looks at the time zone only when it is asked.
    cron.nextRun(new Date(0))
    return cron
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    throw new SluiceError('CONFIG_INVALID', `every(${JSON.stringify(name)}) is ${JSON.stringify(when)}: ${said}.`)
  }
}

function tickEvent(name: string, tick: Millis): EventInput {
  return { source: EVERY, type: name, time: tick, dedupeId: `${name}@${tick}`, data: { tick } }
}

export interface TickerParts {
  readonly clock: Clock
  readonly now: () => Millis
  readonly publish: (event: EventInput) => Promise<unknown>
  /** Since when the schedule is known: what was missed before is not made up for. */
  readonly since: (name: string) => Promise<Millis>
  readonly ticked: (name: string, tick: Millis) => Promise<void>
}

/** Publishes the ticks of the schedules. After a pause only the last missed one: it is late, not many. */
export class Ticker {
  readonly #parts: TickerParts
  readonly #cancel = new Map<string, () => void>()
  #stopped = false

  constructor(parts: TickerParts) {
    this.#parts = parts
  }

  async start(schedules: readonly Schedule[]): Promise<void> {
    for (const one of schedules) {
      const missed = one.last(this.#parts.now(), await this.#parts.since(one.name))
      if (missed !== undefined) await this.#publish(one.name, missed)
      this.#arm(one)
    }
  }

  stop(): void {
    this.#stopped = true
    for (const cancel of this.#cancel.values()) cancel()
  }

  #arm(one: Schedule): void {
    if (this.#stopped) return
    const now = this.#parts.now()
    const tick = one.after(now)
    if (tick === Infinity) return
    const cancel = this.#parts.clock.after(tick - now, () => void this.#tick(one, tick))
    this.#cancel.set(one.name, cancel)
  }

  async #publish(name: string, tick: Millis): Promise<void> {
    await this.#parts.publish(tickEvent(name, tick))
    await this.#parts.ticked(name, tick)
  }

  async #tick(one: Schedule, tick: Millis): Promise<void> {
    if (this.#parts.now() < tick) return this.#arm(one)
    try {
      await this.#publish(one.name, tick)
    } catch {
      // The store is away; the next tick, or the next start, makes up for it.
    }
    this.#arm(one)
  }
}
