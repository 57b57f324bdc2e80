// The time axis that all pictures share: what was is left of the now line, what will be is right of it.
import { duration } from './format.ts'

export interface Axis {
  /** The length of the whole axis, in milliseconds. */
  readonly span: number
  /** The share of the axis that is past. */
  readonly past: number
  readonly step: number
}

export type ScaleName = '100s' | '10m' | '2h'

export const SCALES: Readonly<Record<ScaleName, Axis>> = {
  '100s': { span: 100_000, past: 0.4, step: 20_000 },
  '10m': { span: 600_000, past: 0.4, step: 120_000 },
  '2h': { span: 7_200_000, past: 0.4, step: 1_440_000 },
}

export const SCALE_TEXTS: Readonly<Record<ScaleName, string>> = { '100s': '100 s', '10m': '10 min', '2h': '2 h' }

export function scaleOf(text: string | undefined): ScaleName {
  return text !== undefined && Object.hasOwn(SCALES, text) ? (text as ScaleName) : '100s'
}

/** `xOf` is the position of a time on the axis, in percent. */
export function xOf(axis: Axis, at: number, now: number): number {
  return (axis.past + (at - now) / axis.span) * 100
}

export const nowX = (axis: Axis): number => axis.past * 100

/** `ticksOf` are the labelled times of an axis, without the now line itself. */
export function ticksOf(axis: Axis): readonly { readonly x: number; readonly text: string }[] {
  const ticks: { x: number; text: string }[] = []
  const before = Math.floor((axis.past * axis.span) / axis.step)
  const after = Math.floor(((1 - axis.past) * axis.span) / axis.step)
  for (let index = -before; index <= after; index += 1) {
    const x = (axis.past + (index * axis.step) / axis.span) * 100
    if (index !== 0 && x < 99)
      ticks.push({ x, text: `${index < 0 ? '−' : '+'}${duration(Math.abs(index) * axis.step)}` })
  }
  return ticks
}

/** `percentText` writes a position as SVG wants it. */
export function percentText(x: number): string {
  return `${Math.round(x * 100) / 100}%`
}
