// How values cross to the server and back: texts that PostgreSQL would refuse, moments that never come, rows as JSON.
import { NEVER, type Millis } from '../../clock.ts'

/** What a row gives: the driver reads whole numbers as numbers, bytes as bytes. */
export type Value = string | number | boolean | null | Uint8Array | readonly (string | number)[]
export type Row = readonly Value[]

/** Without U+0000, which `text` does not take. U+0001 escapes it and itself, so that every text has one form of its own. */
export function written(given: string): string {
  const whole = given.isWellFormed() ? given : given.toWellFormed()
  return HAS_REFUSED.test(whole)
    ? whole.replaceAll(REFUSED, (character) => (character === '\0' ? '\u00010' : '\u00011'))
    : whole
}

export function text(value: Value | undefined): string {
  const found = String(value ?? '')
  return found.includes('\u0001')
    ? found.replaceAll(ESCAPED, (_, which: string) => (which === '0' ? '\0' : '\u0001'))
    : found
}

// oxlint-disable-next-line no-control-regex -- they are what it is about
const HAS_REFUSED = /[\0\u0001]/
// oxlint-disable-next-line no-control-regex -- they are what it is about
const REFUSED = /[\0\u0001]/g
// oxlint-disable-next-line no-control-regex -- they are what it is about
const ESCAPED = /\u0001([01])/g

export function number(value: Value | undefined): number {
  return Number(value ?? 0)
}

export function moment(value: Value | undefined): Millis {
  return value === null || value === undefined ? NEVER : Number(value)
}

export function momentOrNull(at: Millis): Millis | null {
  return at >= NEVER ? null : at
}

/** As plain bytes: the slice of a Buffer would be the same memory. */
export function bytes(value: Value | undefined): Uint8Array {
  return value instanceof Uint8Array ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : EMPTY
}

const EMPTY = new Uint8Array()

/** The form in which `bytea` is written inside JSON. */
export function hex(of: Uint8Array): string {
  return `\\x${Buffer.from(of.buffer, of.byteOffset, of.byteLength).toString('hex')}`
}

export function numbers(value: Value | undefined): readonly number[] {
  return Array.isArray(value) ? (value as readonly (string | number)[]).map(Number) : []
}

export function texts(value: Value | undefined): readonly string[] {
  return Array.isArray(value) ? (value as readonly (string | number)[]).map(String) : []
}
