// `Pressure` is the level from 0 to 1 by which an adaptive window of a flow grows (L22).
import type { Millis } from '../clock.ts'

export interface Pressure {
  readonly level: number
  readonly at: Millis
  readonly raisedAt: Millis
}

export const NO_PRESSURE: Pressure = { level: 0, at: 0, raisedAt: Number.NEGATIVE_INFINITY }

const HALF_LIFE = 60_000
const STEP = 0.25
const MIN_STEP_INTERVAL = 5_000

export function computePressureLevel(pressure: Pressure, now: Millis): number {
  return pressure.level * 0.5 ** (Math.max(0, now - pressure.at) / HALF_LIFE)
}

/** `raisePressure` adds one step after a 429 or a late first lane. At most one step counts in five seconds. */
export function raisePressure(pressure: Pressure, now: Millis): Pressure {
  if (now - pressure.raisedAt < MIN_STEP_INTERVAL) return pressure
  return { level: Math.min(1, computePressureLevel(pressure, now) + STEP), at: now, raisedAt: now }
}

export function computeAdaptiveQuiet(range: { readonly from: Millis; readonly to: Millis }, level: number): Millis {
  return range.from * (range.to / range.from) ** level
}
