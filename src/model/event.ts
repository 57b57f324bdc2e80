// One thing that happened: stored once, never changed. Its body is bytes to everything but the code that reads it.
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { isTooDeep } from './depth.ts'

/** An event as a handler sees it. Attribute names are those of CloudEvents. */
export interface Event {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: Millis
  /** '' for none. */
  readonly tenant: string
  readonly subject: string
  /** Further CloudEvents attributes as a JSON object, '' for none. */
  readonly attributes: string
  readonly body: Uint8Array
  /** When the store took it in. */
  readonly arrived: Millis
}

/** What is larger belongs elsewhere, and where it is into the event: stores hold a few at a time. */
export const BODY_BYTES_MAX: number = 100 * 1024 * 1024
export const ATTRIBUTES_BYTES_MAX: number = 16 * 1024 * 1024

/** Stores index ids as they are. */
export const ID_LENGTH_MAX = 128

/** Characters, as PostgreSQL counts them: one outside the Basic Multilingual Plane is one. */
export function isId(id: string): boolean {
  return (
    id !== '' &&
    (id.length <= ID_LENGTH_MAX || (id.length <= 2 * ID_LENGTH_MAX && Array.from(id).length <= ID_LENGTH_MAX))
  )
}

/** As far from 1970 as a Date can be: what is further cannot be written down in a delivery. */
const TIME_MAX: Millis = 8.64e15

export function isTime(at: Millis): boolean {
  return Number.isInteger(at) && Math.abs(at) <= TIME_MAX
}

/** The attribute that says of an event that its bytes are sealed in the store. Nobody else may say so. */
export const SEALED = 'sluicesealed'

/** The attribute that names the one endpoint an event is for. No extension of CloudEvents can be called so. */
export const ADDRESSEE = 'sluice-to'

const ALPHABET = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const TIME_LENGTH = 10
const CHANCE_LENGTH = 16

// One visit to the system's source of randomness, and to the calendar, serves many ids.
const chance = { bytes: Buffer.alloc(0), used: 0 }
const latest = { now: -1, text: '' }

/** A fresh event id: 10 characters of time, 16 of chance. Ids sort by time, which keeps indexes appending. */
export function newEventId(now: Millis): string {
  if (now !== latest.now) Object.assign(latest, { now, text: timeText(now) })
  if (chance.used + CHANCE_LENGTH > chance.bytes.length) {
    chance.bytes = randomBytes(CHANCE_LENGTH * 256).map((byte) => ALPHABET[byte % 32] ?? 0) as typeof chance.bytes
    chance.used = 0
  }
  chance.used += CHANCE_LENGTH
  return latest.text + chance.bytes.toString('latin1', chance.used - CHANCE_LENGTH, chance.used)
}

function timeText(now: Millis): string {
  const digits = Buffer.alloc(TIME_LENGTH)
  for (let rest = now, digit = TIME_LENGTH - 1; digit >= 0; digit--, rest = Math.floor(rest / 32)) {
    digits[digit] = ALPHABET[rest % 32] ?? 0
  }
  return digits.toString('latin1')
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export function textOf(body: Uint8Array): string {
  return decoder.decode(body)
}

/** The body as JSON. `undefined` when it is not JSON, or nested deeper than 64: the bytes are still there. */
export function dataOf(body: Uint8Array): unknown {
  return jsonOf(body)?.value
}

/** With its text, as it came. */
export function jsonOf(body: Uint8Array): { readonly text: string; readonly value: unknown } | undefined {
  if (isTooDeep(body)) return undefined
  const text = textOf(body)
  try {
    return { text, value: PROTOTYPE.test(text) ? JSON.parse(text, withoutPrototype) : JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** However it is written. */
const PROTOTYPE = /__proto__|\\u00(?:5f|6f|70|72|74)/i

/** A member of that name is of no use to anybody but who wants a careless copy of it to change what all objects are. */
function withoutPrototype(name: string, value: unknown): unknown {
  return name === '__proto__' ? undefined : value
}
