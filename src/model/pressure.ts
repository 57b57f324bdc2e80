// How hard-pressed a flow is, from 0 to 1: what an adaptive window stretches by (L22).
import type { Millis } from '../clock.ts'

export interface Pressure {
  readonly level: number
  readonly at: Millis
  readonly raisedAt: Millis
}

export const NO_PRESSURE: Pressure = { level: 0, at: 0, raisedAt: Number.NEGATIVE_INFINITY }

const HALF_LIFE = 60_000
const STEP = 0.25
const STEP_APART = 5_000

export function levelAt(pressure: Pressure, now: Millis): number {
  return pressure.level * 0.5 ** (Math.max(0, now - pressure.at) / HALF_LIFE)
}

/** A refusal by the other side, or a late head of line; at most one counts in five seconds. */
export function raise(pressure: Pressure, now: Millis): Pressure {
  if (now - pressure.raisedAt < STEP_APART) return pressure
  return { level: Math.min(1, levelAt(pressure, now) + STEP), at: now, raisedAt: now }
}

export function adaptiveQuiet(range: { readonly from: Millis; readonly to: Millis }, level: number): Millis {
  return range.from * (range.to / range.from) ** level
}
