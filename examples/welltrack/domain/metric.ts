// `Metric` is one row of wt_health_metrics: what it measures, its value, and the time that it covers.
import { hash } from 'node:crypto'

export type Provider = 'garmin' | 'strava'

export interface Metric {
  readonly type: string
  readonly value: number
  readonly unit: string
  /** What else the design keeps beside the value. Fields that were not measured are absent. */
  readonly text: Readonly<Record<string, unknown>>
  /** An instant (`2026-03-29T00:12:00Z`), or a day of the person's own calendar, which has no time zone. */
  readonly start: string
  readonly end: string
  /** The day of the person's own calendar. */
  readonly date: string
}

/** What a payload says: its metrics, and the fields that the design asks for and the payload lacks. */
export interface Mapped {
  readonly metrics: readonly Metric[]
  readonly missing: readonly string[]
}

/** A `MalformedError` says why nothing can be taken from a payload, now or later. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError'
}

/** SHA256(profile_id || source || metric_type || start_time || end_time), as the design defines it. */
export function dedupeHash(profile: string, source: Provider, { type, start, end }: Metric): string {
  return hash('sha256', profile + source + type + start + end)
}

/** `Fields` reads the fields of a payload and remembers which ones it lacks. */
export class Fields {
  readonly missing: string[] = []
  readonly #item: Readonly<Record<string, unknown>>

  constructor(item: unknown) {
    if (!isRecord(item)) throw new MalformedError('The item is not an object.')
    this.#item = item
  }

  /** A finite number, or undefined. Any of the names will do; the first one is reported as missing. */
  number(name: string, ...others: readonly string[]): number | undefined {
    const value = [name, ...others].map((one) => this.#item[one]).find((one) => one !== undefined && one !== null)
    if (typeof value === 'number' && Number.isFinite(value)) return value
    this.missing.push(value === undefined ? name : `${name} (not a number)`)
    return undefined
  }

  /** The providers write a negative number where nothing was measured. */
  measured(name: string, ...others: readonly string[]): number | undefined {
    const value = this.number(name, ...others)
    return value !== undefined && value >= 0 ? value : undefined
  }

  /** For a measurement that cannot be zero, e.g. a heart rate. */
  positive(name: string, ...others: readonly string[]): number | undefined {
    const value = this.measured(name, ...others)
    return value === 0 ? undefined : value
  }

  text(name: string, ...others: readonly string[]): string | undefined {
    const value = [name, ...others].map((one) => this.#item[one]).find((one) => typeof one === 'string' && one !== '')
    if (typeof value === 'string') return value
    this.missing.push(name)
    return undefined
  }

  /** A value that need not be there. */
  optional(name: string): unknown {
    return this.#item[name]
  }

  has(...names: readonly string[]): boolean {
    return names.some((name) => this.#item[name] !== undefined && this.#item[name] !== null)
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Only the fields that have a value. */
export function present(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

const LATEST = 253_402_300_799

/** `2026-03-29T00:12:00Z`. */
export function instant(seconds: number): string {
  if (!(seconds >= 0 && seconds <= LATEST)) throw new MalformedError(`${seconds} is not a time in seconds.`)
  return `${new Date(Math.round(seconds) * 1_000).toISOString().slice(0, 19)}Z`
}

export function mean(values: readonly number[]): number {
  return Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * 10) / 10
}
