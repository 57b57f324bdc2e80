// This file publishes scheduled ticks as events with the dedupe id `name@tick`: however many processes tick, one event
// is stored.
import { Cron } from 'croner'
import type { Clock, Millis } from '../clock.ts'
import { messageOf, SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { EventInput, PublishResult } from '../model/event.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { changeDoc, type DocChange } from '../store/documents.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'

export const EVERY_SOURCE = 'sluice.every'

export interface Schedule {
  readonly name: string
  /** Returns the first tick after a time. */
  readonly nextAfter: (time: Millis) => Millis
  /** Returns the last tick at or before a time, or undefined if there was none since `since`. */
  readonly lastBefore: (time: Millis, since: Millis) => Millis | undefined
}

const DURATION = /^\d+(\.\d+)?(ms|s|m|h|d)$/
const MIN_INTERVAL = 100

/** `parseTimeZone` returns the time zone in a schedule's options, if they have one. */
export function parseTimeZone(name: string, options: { readonly timeZone?: string }): string | undefined {
  if (typeof options !== 'object' || options === null)
    throw invalid(name, "must have an object as options, e.g. { timeZone: 'Europe/Berlin' }.")
  assertKnownOptions(options, ['timeZone'], `every(${JSON.stringify(name)}): `)
  return options.timeZone
}

/** `createSchedule` takes a duration such as `'5m'`, or a cron expression, in UTC by default. */
export function createSchedule(name: string, when: string, timeZone?: string): Schedule {
  if (typeof name !== 'string' || name === '') throw invalid(name, 'must have a name, which identifies its ticks.')
  if (!DURATION.test(when)) return createCronSchedule(name, when, assertTimeZone(name, timeZone))
  if (timeZone !== undefined)
    throw invalid(name, `must not have a timeZone with ${when}. Omit it, or use a cron expression.`)
  return createIntervalSchedule(name, when)
}

/** An empty name would select the time zone of the machine. */
function assertTimeZone(name: string, timeZone: string = 'UTC'): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  } catch {
    throw invalid(name, `must have a timeZone like Europe/Berlin; got ${JSON.stringify(timeZone)}.`)
  }
}

function createIntervalSchedule(name: string, when: string): Schedule {
  // A tick becomes the time of an event, in whole milliseconds. In floating point, 1.1 hours is no whole number of
  // them.
  const every = Math.round(parseDuration(when as Duration, `every(${JSON.stringify(name)})`))
  if (every < MIN_INTERVAL) throw invalid(name, `must be at least ${MIN_INTERVAL} ms; got ${every} ms.`)
  const tickBefore = (time: Millis): Millis => Math.floor(time / every) * every
  return {
    name,
    nextAfter: (time) => tickBefore(time) + every,
    lastBefore: (time, since) => (tickBefore(time) > since ? tickBefore(time) : undefined),
  }
}

function createCronSchedule(name: string, when: string, timeZone: string): Schedule {
  const cron = parseCron(name, when, timeZone)
  return {
    name,
    nextAfter: (time) => cron.nextRun(new Date(time))?.getTime() ?? Infinity,
    lastBefore(time, since) {
      // Ticks are at least a second apart, and mostly further. Growing steps back find the last one.
      for (let back = 60_000; ; back *= 4) {
        let tick = cron.nextRun(new Date(Math.max(since, time - back)))?.getTime()
        if (tick !== undefined && tick <= time) {
          for (let next = tick; next <= time; next = cron.nextRun(new Date(tick))?.getTime() ?? Infinity) tick = next
          return tick
        }
        if (time - back <= since) return undefined
      }
    },
  }
}

function parseCron(name: string, when: string, timeZone: string): Cron {
  try {
    const cron = new Cron(when, { paused: true, timezone: timeZone })
    // Cron validates the time zone only when it computes a run.
    cron.nextRun(new Date(0))
    return cron
  } catch (error) {
    const reason = messageOf(error)
      .replace(/^\w+: /, '')
      .replace(/\.+$/, '')
    const rule = "must have a duration like '5m' or a cron expression like '0 8 * * *'"
    throw invalid(name, `${rule}; got ${JSON.stringify(when)}: ${reason}.`)
  }
}

function invalid(name: string, what: string): SluiceError {
  return invalidOption(`every(${JSON.stringify(name)}) ${what}`)
}

function createTickEvent(name: string, tick: Millis): EventInput {
  return { source: EVERY_SOURCE, type: name, time: tick, dedupeId: `${name}@${tick}`, data: { tick } }
}

export interface TickerDependencies {
  readonly clock: Clock
  readonly now: () => Millis
  readonly publish: (event: EventInput) => Promise<readonly Pick<PublishResult, 'kind'>[]>
  /** Keeps the last tick of each schedule. Ticks missed since then are made up for, earlier ones are not. */
  readonly store: Pick<Store, 'readDocs' | 'writeDocs'>
}

/** The first and the longest delay before an unstored tick is tried again. */
const RETRY_DELAY: Millis = 1_000
const RETRY_DELAY_MAX: Millis = 60_000
/** A timer does not notice that the clock was set forward or that the machine slept. This bounds how late a tick can
    be. */
const MAX_TIMER: Millis = 60_000

/** `Ticker` publishes the ticks of the schedules. After downtime, it publishes only the last missed tick. */
export class Ticker {
  readonly #deps: TickerDependencies
  readonly #timers = new Map<string, () => void>()
  #stopped = false

  constructor(parts: TickerDependencies) {
    this.#deps = parts
  }

  /** `start` starts all schedules, or none. */
  async start(schedules: readonly Schedule[]): Promise<void> {
    try {
      for (const one of schedules) {
        const missed = one.lastBefore(this.#deps.now(), await readLastTick(this.#deps.store, one.name))
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
    for (const cancel of this.#timers.values()) cancel()
  }

  #arm(one: Schedule): void {
    const now = this.#deps.now()
    const tick = one.nextAfter(now)
    if (tick < Infinity) this.#runAfter(one, Math.min(tick - now, MAX_TIMER), () => this.#tick(one, tick, RETRY_DELAY))
  }

  #runAfter(one: Schedule, delay: Millis, then: () => Promise<void>): void {
    if (this.#stopped) return
    const cancel = this.#deps.clock.after(delay, () => void then())
    this.#timers.set(one.name, cancel)
  }

  async #publish(name: string, tick: Millis): Promise<void> {
    const published = await this.#deps.publish(createTickEvent(name, tick))
    if (published.some(({ kind }) => kind === 'refused')) throw new Error(`The tick of ${name} was refused.`)
    await writeLastTick(this.#deps.store, name, tick)
  }

  /** `#tick` retries until the tick is stored: the next one may be a day or a year away. */
  async #tick(one: Schedule, tick: Millis, patience: Millis): Promise<void> {
    const now = this.#deps.now()
    // Too early, or the clock of the store was set back.
    if (now < tick) return this.#arm(one)
    const latest = one.lastBefore(now, tick) ?? tick
    try {
      await this.#publish(one.name, latest)
    } catch {
      return this.#runAfter(one, patience, () => this.#tick(one, latest, Math.min(2 * patience, RETRY_DELAY_MAX)))
    }
    this.#arm(one)
  }
}

const KIND = 'every'

type TickStore = TickerDependencies['store']

/** `readLastTick` returns the last published tick. For a new schedule, it stores and returns the present time. */
function readLastTick(store: TickStore, name: string): Promise<Millis> {
  return changeDoc(store, tickDoc(name), (doc, now) =>
    doc === undefined ? { body: toTickBody(now), result: now } : { result: parseTick(doc) },
  )
}

function writeLastTick(store: TickStore, name: string, tick: Millis): Promise<void> {
  return changeDoc(store, tickDoc(name), (doc) => {
    const isKnown = doc !== undefined && parseTick(doc) >= tick
    return { ...(!isKnown && { body: toTickBody(tick) }), result: undefined }
  })
}

function tickDoc(name: string): DocChange {
  return { kind: KIND, id: name, title: `the last tick of ${name}` }
}

function toTickBody(tick: Millis): Buffer {
  return Buffer.from(String(tick))
}

function parseTick(doc: Doc): Millis {
  return Number(Buffer.from(doc.body).toString())
}
