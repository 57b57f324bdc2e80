// Schedules are a way in: each tick is an event with the dedupe id `name@tick`, so that however many processes tick, one counts.
import { Cron } from 'croner'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { EventInput } from '../model/event-input.ts'
import { onlyKnown } from '../model/options.ts'
import type { Published } from './publisher.ts'

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

const EVERY_OPTIONS: ReadonlySet<string> = new Set(['timeZone'])

/** The time zone that a schedule's options name, if they do. */
export function zoneOf(name: string, options: { readonly timeZone?: string }): string | undefined {
  if (typeof options !== 'object' || options === null)
    throw invalid(name, "has options that are no object; { timeZone: 'Europe/Berlin' } is one.")
  onlyKnown(options, EVERY_OPTIONS, `every(${JSON.stringify(name)}): `)
  return options.timeZone
}

/** `'5m'`, or a cron expression, in UTC unless a time zone is said. */
export function schedule(name: string, when: string, timeZone?: string): Schedule {
  if (typeof name !== 'string' || name === '') throw invalid(name, 'has no name; ticks are told apart by it.')
  if (!DURATION.test(when)) return byCron(name, when, checkedZone(name, timeZone))
  if (timeZone !== undefined)
    throw invalid(name, `has a timeZone that ${when} would ignore; leave it out, or say when by a cron expression.`)
  return byInterval(name, when)
}

/** An empty one would be taken for that of the machine. */
function checkedZone(name: string, timeZone: string = 'UTC'): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  } catch {
    throw invalid(name, `has ${JSON.stringify(timeZone)} for a timeZone; one is called like Europe/Berlin.`)
  }
}

function byInterval(name: string, when: string): Schedule {
  // A tick is the time of an event, which has whole milliseconds: 1.1 hours are no whole number of them to a computer.
  const every = Math.round(millis(when as Duration, `every(${JSON.stringify(name)})`))
  if (every < LEAST) throw invalid(name, `is ${every} ms; at least ${LEAST}.`)
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
    throw invalid(name, `is ${JSON.stringify(when)}: ${said}.`)
  }
}

function invalid(name: string, what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `every(${JSON.stringify(name)}) ${what}`)
}

function tickEvent(name: string, tick: Millis): EventInput {
  return { source: EVERY, type: name, time: tick, dedupeId: `${name}@${tick}`, data: { tick } }
}

export interface TickerParts {
  readonly clock: Clock
  readonly now: () => Millis
  readonly publish: (event: EventInput) => Promise<readonly Pick<Published, 'kind'>[]>
  /** Since when the schedule is known: what was missed before is not made up for. */
  readonly since: (name: string) => Promise<Millis>
  readonly ticked: (name: string, tick: Millis) => Promise<void>
}

/** How soon a tick is tried again that could not be stored, and at most how late. */
const TRY_AGAIN: Millis = 1_000
const TRY_AGAIN_MAX: Millis = 60_000
/** A timer knows nothing of a clock that was put forward, or of a machine that slept: ticks are late by no more than this. */
const LOOK_AGAIN: Millis = 60_000

/** Publishes the ticks of the schedules. After a pause only the last missed one: it is late, not many. */
export class Ticker {
  readonly #parts: TickerParts
  readonly #cancel = new Map<string, () => void>()
  #stopped = false

  constructor(parts: TickerParts) {
    this.#parts = parts
  }

  /** All of them, or none. */
  async start(schedules: readonly Schedule[]): Promise<void> {
    try {
      for (const one of schedules) {
        const missed = one.last(this.#parts.now(), await this.#parts.since(one.name))
        if (missed !== undefined) await this.#publish(one.name, missed)
        this.#arm(one)
      }
    } catch (error) {
      this.stop()
      throw error
    }
  }

  stop(): void {
    this.#stopped = true
    for (const cancel of this.#cancel.values()) cancel()
  }

  #arm(one: Schedule): void {
    const now = this.#parts.now()
    const tick = one.after(now)
    if (tick < Infinity) this.#after(one, Math.min(tick - now, LOOK_AGAIN), () => this.#tick(one, tick, TRY_AGAIN))
  }

  #after(one: Schedule, delay: Millis, then: () => Promise<void>): void {
    if (this.#stopped) return
    const cancel = this.#parts.clock.after(delay, () => void then())
    this.#cancel.set(one.name, cancel)
  }

  async #publish(name: string, tick: Millis): Promise<void> {
    const published = await this.#parts.publish(tickEvent(name, tick))
    if (published.some(({ kind }) => kind === 'refused')) throw new Error(`The tick of ${name} was refused.`)
    await this.#parts.ticked(name, tick)
  }

  /** Until it is stored: a schedule may not tick again for a day, or a year. */
  async #tick(one: Schedule, tick: Millis, patience: Millis): Promise<void> {
    const now = this.#parts.now()
    // Not yet; or the clock of the store was put back.
    if (now < tick) return this.#arm(one)
    const latest = one.last(now, tick) ?? tick
    try {
      await this.#publish(one.name, latest)
    } catch {
      return this.#after(one, patience, () => this.#tick(one, latest, Math.min(2 * patience, TRY_AGAIN_MAX)))
    }
    this.#arm(one)
  }
}
