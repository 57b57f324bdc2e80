// Formats numbers and untrusted texts for people: durations, counts with nouns, keys that cannot fake output.
import type { Millis } from '../../clock.ts'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000

/** `formatDuration` rounds to one decimal; the exact value is in the facts. */
export function formatDuration(ms: Millis): string {
  const length = Math.abs(ms)
  if (length < SECOND) return `${Math.round(length)} ms`
  if (length < MINUTE) return `${roundToTenths(length / SECOND)} s`
  if (length < HOUR) return formatCount(roundToTenths(length / MINUTE), 'minute')
  if (length < 2 * DAY) return formatCount(roundToTenths(length / HOUR), 'hour')
  return formatCount(roundToTenths(length / DAY), 'day')
}

/** `formatRelativeTime` formats a time relative to now. */
export function formatRelativeTime(ms: Millis): string {
  if (ms === 0) return 'now'
  return ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(ms)} ago`
}

export function formatCount(n: number, noun: string, nouns: string = `${noun}s`): string {
  return `${n} ${n === 1 ? noun : nouns}`
}

function roundToTenths(value: number): number {
  return Math.round(value * 10) / 10
}

const MAX_KEY = 80
export const MAX_TEXT = 200

/** JSON leaves these characters, but terminals and browsers act on them: controls, line ends, direction marks. */
const DECEPTIVE_CHARACTERS = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** `toSafeJson` formats any value as JSON on one line. */
export function toSafeJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  return text.replace(DECEPTIVE_CHARACTERS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** `quote` quotes an untrusted text, with at most `most` characters between the quotes. */
export function quote(text: string, most: number = MAX_KEY): string {
  let shown = ''
  for (const letter of text.slice(0, most + 1)) {
    const next = shown + toSafeJson(letter).slice(1, -1)
    if (next.length > most) return `"${shown}…"`
    shown = next
  }
  return `"${shown}"`
}
