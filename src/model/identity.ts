// `laneId` and `computeIdentity` hash names of any length to a fixed length. A store indexes the hash and keeps the text beside it.
import { hash } from 'node:crypto'

/** Returns 132 bits of SHA-256 as 22 characters: short enough for an index, too long to collide. */
function hashParts(parts: readonly string[]): string {
  // The lengths make the parts unambiguous: ('a', 'bc') and ('ab', 'c') differ, and NUL is an ordinary character.
  let text = ''
  for (const part of parts) text += `${part.length}:${part}`
  return hash('sha256', text, 'base64url').slice(0, 22)
}

export type LaneId = string
export type EventIdentity = string

/** Caches the ids of recent lanes, so that a key with frequent events is hashed once. */
const recentIds = new Map<string, Map<string, LaneId>>()
const RECENT_MAX = 4_096

export function laneId(flow: string, key: string): LaneId {
  let ids = recentIds.get(flow)
  if (ids === undefined || ids.size >= RECENT_MAX) {
    if (recentIds.size >= RECENT_MAX) recentIds.clear()
    recentIds.set(flow, (ids = new Map()))
  }
  let id = ids.get(key)
  if (id === undefined) ids.set(key, (id = hashParts([flow, key])))
  return id
}

/**
 * `keylessLaneId` returns the lane of an event without a key. The id begins with the time, like the event's id. Keyless lanes come and
 * go by the thousand, and an index that grows only at its end costs a fraction of one that is written everywhere.
 */
export function keylessLaneId(flow: string, eventId: string): LaneId {
  const named = hashParts([flow, eventId])
  return STARTS_WITH_TIME.test(eventId) ? eventId.slice(0, 10) + named.slice(0, 16) : named
}

const STARTS_WITH_TIME = /^[0-9a-z]{10}/

/** `computeIdentity` identifies an event (L10). It includes the tenant, so no tenant can suppress another's events. */
export function computeIdentity(source: string, tenant: string, dedupeId: string): EventIdentity {
  return hashParts([source, tenant, dedupeId])
}

export const KEY_BYTES_MAX = 16_384

/** `findKeyFault` returns why a text cannot be the key of a lane, or undefined if it can (L11). */
export function findKeyFault(key: string): 'ill-formed' | 'too-long' | undefined {
  if (!key.isWellFormed()) return 'ill-formed'
  // A UTF-16 unit takes at most three bytes in UTF-8, so most keys need no counting.
  if (key.length * 3 > KEY_BYTES_MAX && Buffer.byteLength(key) > KEY_BYTES_MAX) return 'too-long'
  return undefined
}
