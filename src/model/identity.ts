// Names of fixed length for things whose own names have none: a store indexes these and keeps the text beside them.
import { hash } from 'node:crypto'

/** 132 bits of SHA-256 as 22 characters: short enough for an index, too long to collide. */
function digest(parts: readonly string[]): string {
  // Lengths make the parts unambiguous: ('a', 'bc') and ('ab', 'c') differ, and NUL is an ordinary character.
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return hash('sha256', text, 'base64url').slice(0, 22)
}

export type LaneId = string
export type Identity = string

/** The names of lanes that were asked for lately: a key that is edited all day is hashed once. */
const recent = new Map<string, Map<string, LaneId>>()
const RECENT_MAX = 4_096

/** One flow and one key. */
export function laneId(flow: string, key: string): LaneId {
  let ids = recent.get(flow)
  if (ids === undefined || ids.size >= RECENT_MAX) {
    if (recent.size >= RECENT_MAX) recent.clear()
    recent.set(flow, (ids = new Map()))
  }
  let id = ids.get(key)
  if (id === undefined) ids.set(key, (id = digest([flow, key])))
  return id
}

/**
 * The lane of an event that has no key. It begins as the event's id does, with the time: such lanes come and go by the
 * thousand, and an index that only grows at its end costs a fraction of one that is written everywhere.
 */
export function ownLaneId(flow: string, eventId: string): LaneId {
  const named = digest([flow, eventId])
  return STARTS_WITH_TIME.test(eventId) ? eventId.slice(0, 10) + named.slice(0, 16) : named
}

const STARTS_WITH_TIME = /^[0-9a-z]{10}/

/** What makes two arrivals the same event (L10). The tenant is part of it: no tenant can suppress another's events. */
export function identity(source: string, tenant: string, dedupeId: string): Identity {
  return digest([source, tenant, dedupeId])
}

export const KEY_BYTES_MAX = 16_384

/** Why a text cannot be the key of a lane, or undefined if it can (L11). */
export function keyFault(key: string): 'ill-formed' | 'too-long' | undefined {
  if (!key.isWellFormed()) return 'ill-formed'
  // A UTF-16 unit takes at most three bytes in UTF-8, so that most keys need no counting.
  if (key.length * 3 > KEY_BYTES_MAX && Buffer.byteLength(key) > KEY_BYTES_MAX) return 'too-long'
  return undefined
}
