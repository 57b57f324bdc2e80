// Figures and strangers' texts as a person reads them: times with units, counts with nouns, keys that cannot pretend.
import type { Millis } from '../clock.ts'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000

/** A length of time with one decimal at most; the exact figure is in the facts. */
export function span(ms: Millis): string {
  const length = Math.abs(ms)
  if (length < SECOND) return `${Math.round(length)} ms`
  if (length < MINUTE) return `${tenths(length / SECOND)} s`
  if (length < HOUR) return counted(tenths(length / MINUTE), 'minute')
  if (length < 2 * DAY) return counted(tenths(length / HOUR), 'hour')
  return counted(tenths(length / DAY), 'day')
}

/** When something is, seen from now. */
export function when(ms: Millis): string {
  if (ms === 0) return 'now'
  return ms > 0 ? `in ${span(ms)}` : `${span(ms)} ago`
}

export function counted(n: number, noun: string, nouns: string = `${noun}s`): string {
  return `${n} ${n === 1 ? noun : nouns}`
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

const KEY_SHOWN = 80
export const TEXT_SHOWN = 200

/** What JSON leaves as it is and a terminal or a browser does not: controls, line ends, and marks that turn text around. */
const DECEITFUL = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** Any value as JSON that stays on its line. */
export function json(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  return text.replace(DECEITFUL, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A stranger's text, quoted, with at most `most` characters between the quotes. */
export function quoted(text: string, most: number = KEY_SHOWN): string {
  let shown = ''
  for (const letter of text.slice(0, most + 1)) {
    const next = shown + json(letter).slice(1, -1)
    if (next.length > most) return `"${shown}…"`
    shown = next
  }
  return `"${shown}"`
}
