// One thing that happened: stored once, never changed. Its body is bytes to everything but the code that reads it.
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'

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

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const CHANCE_LENGTH = 16
const chance = { bytes: Buffer.alloc(0), used: 0 }

/** A fresh event id: 10 characters of time, 16 of chance. Ids sort by time, which keeps indexes appending. */
export function newEventId(now: Millis): string {
  let id = ''
  for (let rest = now, digit = 0; digit < 10; digit++, rest = Math.floor(rest / 32)) id = ALPHABET[rest % 32] + id
  // One visit to the system's source of randomness serves many ids.
  if (chance.used + CHANCE_LENGTH > chance.bytes.length) {
    chance.bytes = randomBytes(CHANCE_LENGTH * 256)
    chance.used = 0
  }
  for (let end = chance.used + CHANCE_LENGTH; chance.used < end; chance.used++) {
    id += ALPHABET[(chance.bytes[chance.used] ?? 0) % 32]
  }
  return id
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export function textOf(body: Uint8Array): string {
  return decoder.decode(body)
}

/** The body as JSON. `undefined` when it is not JSON: the bytes are still there. */
export function dataOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(body))
  } catch {
    return undefined
  }
}
