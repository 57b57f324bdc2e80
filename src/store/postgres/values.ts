// Converts values between JavaScript and PostgreSQL: texts that the server would reject, deadlines that never come, and bytes.
import { NEVER, type Millis } from '../../clock.ts'
import type { CellReader, SqlCell, SqlRow } from '../sql/rows.ts'

/** `Value` is a value of a row. The driver reads whole numbers as numbers and bytes as bytes. */
export type Value = SqlCell
export type Row = SqlRow

/**
 * `escapeText` replaces U+0000, which the type `text` does not accept. U+0001 is the escape character and is escaped itself, so
 * each string has exactly one escaped form.
 */
export function escapeText(given: string): string {
  const whole = given.isWellFormed() ? given : given.toWellFormed()
  return HAS_UNSUPPORTED.test(whole)
    ? whole.replaceAll(UNSUPPORTED, (character) => (character === '\0' ? '\u00010' : '\u00011'))
    : whole
}

export function text(value: Value | undefined): string {
  const found = String(value ?? '')
  return found.includes('\u0001')
    ? found.replaceAll(ESCAPED, (_, which: string) => (which === '0' ? '\0' : '\u0001'))
    : found
}

// oxlint-disable-next-line no-control-regex -- control characters are the subject of this pattern
const HAS_UNSUPPORTED = /[\0\u0001]/
// oxlint-disable-next-line no-control-regex -- control characters are the subject of this pattern
const UNSUPPORTED = /[\0\u0001]/g
// oxlint-disable-next-line no-control-regex -- control characters are the subject of this pattern
const ESCAPED = /\u0001([01])/g

export function number(value: Value | undefined): number {
  return Number(value ?? 0)
}

export function millisOrNever(value: Value | undefined): Millis {
  return value === null || value === undefined ? NEVER : Number(value)
}

export function millisOrNull(at: Millis): Millis | null {
  return at >= NEVER ? null : at
}

/** `bytes` returns a plain `Uint8Array`. The slice of a Buffer would share its memory. */
export function bytes(value: Value | undefined): Uint8Array {
  return value instanceof Uint8Array ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : EMPTY
}

const EMPTY = new Uint8Array()

/** `toByteaHex` returns the form of a `bytea` value inside JSON. */
export function toByteaHex(of: Uint8Array): string {
  return `\\x${Buffer.from(of.buffer, of.byteOffset, of.byteLength).toString('hex')}`
}

function numbers(value: Value | undefined): readonly number[] {
  return Array.isArray(value) ? (value as readonly (string | number)[]).map(Number) : []
}

export function texts(value: Value | undefined): readonly string[] {
  return Array.isArray(value) ? (value as readonly (string | number)[]).map(String) : []
}

/** `postgresCells` reads keys stored as bytes, and placements stored as one array: pos, event and size of each. */
export const postgresCells: CellReader = {
  text,
  number,
  bytes,
  key: (cell) => Buffer.from(bytes(cell)).toString(),
  texts,
  numbers,
  placements: (cell) => {
    const all = numbers(cell)
    return Array.from({ length: all.length / 3 }, (_, at) => ({
      pos: all[at * 3] ?? 0,
      event: all[at * 3 + 1] ?? 0,
      size: all[at * 3 + 2] ?? 0,
    }))
  },
}
