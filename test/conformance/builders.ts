// Builders for events, placements and outcomes. A test names only the special values; all others have defaults.
import { NEVER, type Millis } from '../../src/clock.ts'
import { newEventId } from '../../src/model/event.ts'
import { computeIdentity, laneId } from '../../src/model/identity.ts'
import type { LimitParameters } from '../../src/model/limit.ts'
import type { RunOutcome } from '../../src/model/settle.ts'
import type {
  ClaimRequest,
  UnroutedFlow,
  EventToStore,
  Placement,
  ReserveCall,
  RetentionPolicy,
} from '../../src/store/contract/index.ts'
import type { Skip } from '../../src/model/routing.ts'

export const SECOND: Millis = 1_000
export const MINUTE: Millis = 60_000
export const DAY: Millis = 86_400_000
/** The default lease of a claim. */
export const LEASE: Millis = 30_000

interface WindowOverrides {
  readonly quiet?: Millis
  /** Default: ten times `quiet`. */
  readonly max?: Millis
  /** Shorthand for an endless `quiet` with this `max`. */
  readonly every?: Millis
  readonly maxEvents?: number
  readonly maxBytes?: number
  readonly jitter?: number
  readonly leading?: boolean
  readonly cancel?: boolean
}

export interface PlacementOverrides extends WindowOverrides {
  readonly flow?: string
  readonly key?: string
  readonly group?: string
}

export interface EventOverrides extends PlacementOverrides {
  /** Returns one placement for each given lane, in the same order. */
  readonly keys?: readonly string[]
  readonly placements?: readonly PlacementOverrides[]
  readonly unrouted?: readonly UnroutedFlow[]
  readonly skips?: readonly Skip[]
  readonly id?: string
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  readonly subject?: string
  readonly attributes?: string
  readonly body?: string | Uint8Array
  readonly request?: string
  /** Default: the event's own id. */
  readonly dedupe?: string
  readonly dedupeFor?: Millis
}

export function createPlacement(words: PlacementOverrides = {}): Placement {
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

function createPlacements(words: EventOverrides): readonly Placement[] {
  if (words.placements !== undefined) return words.placements.map((each) => createPlacement({ ...words, ...each }))
  if (words.keys !== undefined) return words.keys.map((key) => createPlacement({ ...words, key }))
  const isPlaced = (words.unrouted ?? words.skips) === undefined || words.key !== undefined
  return isPlaced ? [createPlacement(words)] : []
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Builds an event. Its default body is its name. */
export function createEventToStore(name: string, words: EventOverrides, now: Millis): EventToStore {
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
    body: typeof body === 'string' ? encodeText(body) : body,
    identity: computeIdentity(source, tenant, words.dedupe ?? id),
    dedupeFor: words.dedupeFor ?? 7 * DAY,
    request: encodeText(words.request ?? ''),
    placements: createPlacements(words),
    unrouted: words.unrouted ?? [],
    ...(words.skips !== undefined && { skips: words.skips }),
  }
}

export function createUnrouted(reason: UnroutedFlow['reason'], flow = ''): UnroutedFlow {
  return { flow, reason, error: '' }
}

export type ClaimOverrides = Partial<ClaimRequest> & { readonly process?: string; readonly budget?: number }

export function createClaimRequest(words: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    flow: words.flow ?? 'flow',
    maxRuns: words.maxRuns ?? 100,
    maxFailing: words.maxFailing ?? 100,
    maxSuspects: words.maxSuspects ?? 100,
    maxPerGroup: words.maxPerGroup,
    blockOnCrash: words.blockOnCrash ?? false,
    announceDeadAfter: words.announceDeadAfter,
    maxEvents: words.maxEvents ?? 1_000,
    maxBytes: words.maxBytes ?? 4_000_000,
    lease: words.lease ?? LEASE,
    take: words.take ?? 'all',
  }
}

// Outcomes

export const done: RunOutcome = { kind: 'done' }
export const released: RunOutcome = releasedAfter(0)
export const cancelled: RunOutcome = { kind: 'cancelled' }
export const dropped: RunOutcome = { kind: 'dropped', reason: 'not wanted' }
export const dead: RunOutcome = { kind: 'dead', reason: 'broken', block: false }
export const deadAndBlocking: RunOutcome = { kind: 'dead', reason: 'broken', block: true }

export function retry(after: Millis): RunOutcome {
  return { kind: 'retry', after }
}

export function releasedAfter(after: Millis, state64 = ''): RunOutcome {
  return { kind: 'released', after, state64 }
}

export function snoozed(after: Millis, state64 = ''): RunOutcome {
  return { kind: 'snoozed', after, state64 }
}

interface PartialOverrides {
  readonly retry?: readonly string[]
  readonly dead?: readonly string[]
  readonly after?: Millis
  readonly block?: boolean
}

export function partial(words: PartialOverrides): RunOutcome {
  const { retry: tried = [], dead: died = [], after = 0, block = false } = words
  return { kind: 'partial', retry: tried, after, dead: died, reason: 'refused', block }
}

// Limits and maintenance

type ReserveRequest = ReserveCall['requests'][number]

export function createLimit(rate: number, per: Millis, words: Partial<LimitParameters> = {}): LimitParameters {
  return { rate, per, burst: words.burst ?? 0, cost: words.cost ?? 1 }
}

export function createReserveRequest(
  ticket: string,
  limits: Readonly<Record<string, LimitParameters>>,
): ReserveRequest {
  const list = Object.entries(limits).map(([name, numbers]) => ({ name, ...numbers }))
  return { ticket, limits: list, maxWait: NEVER }
}

/** Keeps everything forever, except where the test sets an age. */
export function createRetentionPolicy(words: Partial<RetentionPolicy> = {}): RetentionPolicy {
  return { events: { '': NEVER }, runs: { '': NEVER }, deadLetters: NEVER, bytes: NEVER, lanesPerTenant: {}, ...words }
}
