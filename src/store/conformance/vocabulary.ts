// The words the tests are written in: events, places and outcomes by what is special about them, all else by default.
import { NEVER, type Millis } from '../../clock.ts'
import { newEventId } from '../../model/event.ts'
import { identity, laneId } from '../../model/identity.ts'
import type { LimitNumbers } from '../../model/limit.ts'
import type { Outcome } from '../../model/settle.ts'
import type { Claim, Mark, NewEvent, Place, ReserveCall, RetentionPolicy } from '../contract/index.ts'

export const SECOND: Millis = 1_000
export const MINUTE: Millis = 60_000
export const DAY: Millis = 86_400_000
/** The lease of every claim that does not say another one. */
export const LEASE: Millis = 30_000

interface WindowWords {
  readonly quiet?: Millis
  /** Ten times `quiet` unless said. */
  readonly max?: Millis
  /** Short for an endless `quiet` with this `max`. */
  readonly every?: Millis
  readonly maxEvents?: number
  readonly maxBytes?: number
  readonly jitter?: number
  readonly leading?: boolean
  readonly cancel?: boolean
}

export interface PlaceWords extends WindowWords {
  readonly flow?: string
  readonly key?: string
  readonly group?: string
}

export interface EventWords extends PlaceWords {
  /** A place in the lane of each, in this order. */
  readonly keys?: readonly string[]
  readonly places?: readonly PlaceWords[]
  readonly marks?: readonly Mark[]
  readonly id?: string
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  readonly subject?: string
  readonly attributes?: string
  readonly body?: string | Uint8Array
  readonly request?: string
  /** The event's own id unless said. */
  readonly dedupe?: string
  readonly dedupeFor?: Millis
}

export function place(words: PlaceWords = {}): Place {
  const flow = words.flow ?? 'flow'
  const key = words.key ?? 'k'
  const quiet = words.every === undefined ? (words.quiet ?? 0) : NEVER
  return {
    lane: laneId(flow, key),
    flow,
    key,
    group: words.group ?? '',
    quiet,
    max: words.every ?? words.max ?? quiet * 10,
    maxEvents: words.maxEvents ?? 1_000,
    maxBytes: words.maxBytes ?? 4_000_000,
    jitter: words.jitter ?? 0,
    leading: words.leading ?? false,
    cancel: words.cancel ?? false,
  }
}

function placesOf(words: EventWords): readonly Place[] {
  if (words.places !== undefined) return words.places.map((each) => place({ ...words, ...each }))
  if (words.keys !== undefined) return words.keys.map((key) => place({ ...words, key }))
  return words.marks === undefined || words.key !== undefined ? [place(words)] : []
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** An event whose body, unless said, is its name. */
export function newEvent(name: string, words: EventWords, now: Millis): NewEvent {
  const id = words.id ?? newEventId(now)
  const source = words.source ?? 'shop'
  const tenant = words.tenant ?? ''
  const body = words.body ?? name
  return {
    id,
    source,
    type: words.type ?? 'order.paid',
    time: now,
    tenant,
    subject: words.subject ?? '',
    attributes: words.attributes ?? '',
    body: typeof body === 'string' ? bytes(body) : body,
    identity: identity(source, tenant, words.dedupe ?? id),
    dedupeFor: words.dedupeFor ?? 7 * DAY,
    request: bytes(words.request ?? ''),
    places: placesOf(words),
    marks: words.marks ?? [],
  }
}

export function mark(reason: Mark['reason'], flow = ''): Mark {
  return { flow, reason, error: '' }
}

export type ClaimWords = Partial<Claim> & { readonly process?: string; readonly budget?: number }

export function claimOf(words: Partial<Claim> = {}): Claim {
  return {
    flow: words.flow ?? 'flow',
    slots: words.slots ?? 100,
    failing: words.failing ?? 100,
    suspects: words.suspects ?? 100,
    perGroup: words.perGroup,
    block: words.block ?? false,
    maxEvents: words.maxEvents ?? 1_000,
    maxBytes: words.maxBytes ?? 4_000_000,
    lease: words.lease ?? LEASE,
    take: words.take ?? 'all',
  }
}

// Outcomes

export const done: Outcome = { kind: 'done' }
export const released: Outcome = givenBack(0)
export const cancelled: Outcome = { kind: 'cancelled' }
export const dropped: Outcome = { kind: 'dropped', reason: 'not wanted' }
export const dead: Outcome = { kind: 'dead', reason: 'broken', block: false }
export const blocking: Outcome = { kind: 'dead', reason: 'broken', block: true }

export function retry(after: Millis): Outcome {
  return { kind: 'retry', after }
}

export function givenBack(after: Millis, state64 = ''): Outcome {
  return { kind: 'released', after, state64 }
}

export function again(after: Millis, state64 = ''): Outcome {
  return { kind: 'again', after, state64 }
}

interface PartialWords {
  readonly retry?: readonly string[]
  readonly dead?: readonly string[]
  readonly after?: Millis
  readonly block?: boolean
}

export function partial(words: PartialWords): Outcome {
  const { retry: tried = [], dead: died = [], after = 0, block = false } = words
  return { kind: 'partial', retry: tried, after, dead: died, reason: 'refused', block }
}

// Limits and upkeep

type Request = ReserveCall['requests'][number]

export function calls(rate: number, per: Millis, words: Partial<LimitNumbers> = {}): LimitNumbers {
  return { rate, per, burst: words.burst ?? 0, cost: words.cost ?? 1 }
}

export function request(ticket: string, limits: Readonly<Record<string, LimitNumbers>>): Request {
  const list = Object.entries(limits).map(([name, numbers]) => ({ name, ...numbers }))
  return { ticket, limits: list, maxWait: NEVER }
}

/** Keeps everything for ever, but for what is said. */
export function keeping(words: Partial<RetentionPolicy> = {}): RetentionPolicy {
  return { events: { '': NEVER }, runs: { '': NEVER }, letters: NEVER, bytes: NEVER, lanesPerTenant: {}, ...words }
}
