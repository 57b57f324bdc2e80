// `PostHistory` describes how the POSTs to an endpoint went: stats per half hour for a day, and the last attempts in full.
// It has a bounded size, and notes can be added in any order. Pure.
import type { Millis } from '../../clock.ts'
import { PURGED_TEXT } from '../../model/steer.ts'
import { addDurations, DurationCounter, NO_DURATIONS, type Durations } from './durations.ts'

/** `PostNote` records one POST, or one failure of Sluice that prevented it. */
export interface PostNote {
  readonly run: string
  /** Starts at 1, over all attempts of the run. */
  readonly attempt: number
  /** When the POST ended. */
  readonly at: Millis
  readonly ms: Millis
  /** Undefined if there was no response. */
  readonly status: number | undefined
  readonly answer: string
  /** Empty if the batch was delivered. */
  readonly error: string
  /** From the time of the oldest event of the batch until now. */
  readonly latency: Millis
  /** The batch is not retried. */
  readonly isLast: boolean
  /** The ids of the first and the last event of the batch. Notes of earlier versions lack them. */
  readonly first?: string
  readonly last?: string
  /** Sluice's own failure. It is shown, but does not count against the endpoint. */
  readonly isOurs?: boolean
  /** The batch has encrypted events, which the response may echo. The response is therefore stored encrypted. */
  readonly confidential?: boolean
}

export type PostAttempt = Omit<PostNote, 'latency' | 'isLast'>

export interface StepStats {
  /** Half hours since 1970. */
  readonly step: number
  readonly delivered: number
  readonly failed: number
  /** Batches that became dead letters. */
  readonly dead: number
  /** Sums in milliseconds: `ms` of all POSTs, `latency` of the deliveries. */
  readonly ms: Millis
  readonly latency: Millis
  /** The distributions of both. Steps of earlier versions lack them. */
  readonly responses?: Durations
  readonly latencies?: Durations
}

export interface PostHistory {
  readonly lastSuccess: Millis
  /** The oldest step first. */
  readonly steps: readonly StepStats[]
  readonly attempts: readonly PostAttempt[]
  /** Runs with a purged event. The endpoint's responses to them are not kept. */
  readonly purged?: readonly string[]
}

/** The stats of the last 24 hours. */
export interface DayStats {
  readonly delivered: number
  readonly failed: number
  readonly dead: number
  readonly ms: Millis
  readonly latency: Millis
  readonly responses: Durations
  readonly latencies: Durations
}

export const NO_HISTORY: PostHistory = { lastSuccess: 0, steps: [], attempts: [] }

export const STEP: Millis = 1_800_000
/** The steps of a day. */
const MAX_STEPS = 48
const MAX_ATTEMPTS = 50
const MAX_TEXT = 1_000
const MAX_PURGED = 200

/** `cleanText` shortens a text that people see, and removes terminal control sequences. */
export function cleanText(text: string): string {
  return text.slice(0, MAX_TEXT).replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
}

/** `addNotes` takes the notes in the order in which they were made. It keeps the details of the last attempts only. */
export function addNotes(history: PostHistory, notes: readonly PostNote[]): PostHistory {
  const counters = new Map<number, StepCounter>()
  let lastSuccess = 0
  for (const note of notes) {
    if (note.isOurs === true) continue
    const step = Math.floor(note.at / STEP)
    let counter = counters.get(step)
    if (counter === undefined) counters.set(step, (counter = new StepCounter()))
    counter.add(note)
    if (note.error === '') lastSuccess = Math.max(lastSuccess, note.at)
  }
  const steps = Array.from(counters, ([step, counter]) => counter.toStats(step))
  const attempts = notes.slice(-MAX_ATTEMPTS).map(({ latency: _latency, isLast: _last, ...attempt }) => {
    return { ...attempt, answer: cleanText(attempt.answer), error: cleanText(attempt.error) }
  })
  return mergeHistories(history, { lastSuccess, steps, attempts })
}

class StepCounter {
  #delivered = 0
  #failed = 0
  #dead = 0
  #ms: Millis = 0
  #latency: Millis = 0
  readonly #responses = new DurationCounter()
  readonly #latencies = new DurationCounter()

  add({ ms, error, latency, isLast }: PostNote): void {
    this.#ms += ms
    this.#responses.add(ms)
    if (error === '') {
      this.#delivered++
      this.#latency += Math.max(0, latency)
      this.#latencies.add(Math.max(0, latency))
    } else {
      this.#failed++
      if (isLast) this.#dead++
    }
  }

  toStats(step: number): StepStats {
    return {
      step,
      delivered: this.#delivered,
      failed: this.#failed,
      dead: this.#dead,
      ms: this.#ms,
      latency: this.#latency,
      responses: this.#responses.toDurations(),
      latencies: this.#latencies.toDurations(),
    }
  }
}

export function mergeHistories(one: PostHistory, other: PostHistory): PostHistory {
  const steps = new Map<number, StepStats>()
  for (const step of [...one.steps, ...other.steps]) steps.set(step.step, addSteps(step, steps.get(step.step)))
  const attempts = withoutRepeatedFailures([...one.attempts, ...other.attempts].toSorted((a, b) => a.at - b.at))
  const purged = [...new Set([...(one.purged ?? []), ...(other.purged ?? [])])].slice(-MAX_PURGED)
  return {
    lastSuccess: Math.max(one.lastSuccess, other.lastSuccess),
    steps: [...steps.values()].toSorted((a, b) => a.step - b.step).slice(-MAX_STEPS),
    attempts: withoutPurged(attempts.slice(-MAX_ATTEMPTS), purged),
    ...(purged.length > 0 && { purged }),
  }
}

function withoutPurged(attempts: readonly PostAttempt[], purged: readonly string[]): readonly PostAttempt[] {
  if (purged.length === 0) return attempts
  const runs = new Set(purged)
  return attempts.map((attempt) => {
    if (!runs.has(attempt.run)) return attempt
    const { first: _first, last: _last, ...kept } = attempt
    return kept.answer === '' ? kept : { ...kept, answer: PURGED_TEXT }
  })
}

/** Sluice's own failure recurs until it is fixed and would displace all other attempts, so each run keeps one. */
function withoutRepeatedFailures(attempts: readonly PostAttempt[]): readonly PostAttempt[] {
  const ours = new Map(attempts.filter(isOwnFailure).map((attempt) => [attempt.run, attempt]))
  return ours.size === 0
    ? attempts
    : attempts.filter((attempt) => !isOwnFailure(attempt) || ours.get(attempt.run) === attempt)
}

export function isOwnFailure(attempt: PostAttempt): boolean {
  return attempt.isOurs === true
}

export function sumLastDay(history: PostHistory, now: Millis): DayStats {
  return sumSteps(listSteps(history, Math.floor(now / STEP) - MAX_STEPS + 1))
}

/** `listSteps` returns the half hours with a POST from `first` on, counted since 1970, the oldest first. */
export function listSteps({ steps }: PostHistory, first: number): readonly StepStats[] {
  return steps.filter(({ step }) => step >= first)
}

export function sumSteps(steps: readonly StepStats[]): DayStats {
  return steps.reduce<StepStats & DayStats>(addSteps, { step: 0, ...NO_STATS })
}

/** `StepCounts` are the POSTs of one half hour. */
export interface StepCounts {
  readonly at: Millis
  readonly delivered: number
  readonly failed: number
}

/** `listLastDay` returns the last 48 half hours, oldest first; the last one is the current one. */
export function listLastDay({ steps }: PostHistory, now: Millis): readonly StepCounts[] {
  const last = Math.floor(now / STEP)
  const known = new Map(steps.map((step) => [step.step, step]))
  return Array.from({ length: MAX_STEPS }, (_, n) => {
    const step = last - MAX_STEPS + 1 + n
    const { delivered = 0, failed = 0 } = known.get(step) ?? {}
    return { at: step * STEP, delivered, failed }
  })
}

const NO_STATS: DayStats = {
  delivered: 0,
  failed: 0,
  dead: 0,
  ms: 0,
  latency: 0,
  responses: NO_DURATIONS,
  latencies: NO_DURATIONS,
}

function addSteps(one: StepStats, other: Omit<StepStats, 'step'> = NO_STATS): StepStats & DayStats {
  return {
    step: one.step,
    delivered: one.delivered + other.delivered,
    failed: one.failed + other.failed,
    dead: one.dead + other.dead,
    ms: one.ms + other.ms,
    latency: one.latency + other.latency,
    responses: addDurations(one.responses ?? NO_DURATIONS, other.responses ?? NO_DURATIONS),
    latencies: addDurations(one.latencies ?? NO_DURATIONS, other.latencies ?? NO_DURATIONS),
  }
}
