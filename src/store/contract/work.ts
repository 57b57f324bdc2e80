// `WorkStore` is the part of a store that processes events. Each method takes one plain object and returns one, may
// be repeated after a lost reply, and is atomic for each item. A store does not know flows: the call brings the
// numbers. Each reply carries the store's time.
import type { PurgeCall, PurgeReply } from './purge.ts'
import type { Millis } from '../../clock.ts'
import type { ClaimCaps } from '../../model/claim.ts'
import type { Event } from '../../model/event.ts'
import type { RoutableEvent } from '../../model/new-event.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Attempt, Rank } from '../../model/lane.ts'
import type { LimitParameters } from '../../model/limit.ts'
import type { WindowParameters } from '../../model/place.ts'
import type { RoutingFault, Skip } from '../../model/routing.ts'
import type { DeathNotice, RunEndOptions, RunOutcome } from '../../model/settle.ts'

export interface WorkStore {
  /** `append` stores events and their placements (L2, L3, L4, L10, L18). It resolves only once the events would survive a crash. */
  append(call: AppendCall): Promise<AppendReply>
  /** `claimUnrouted` leases unrouted events: stored events that still lack placements for some flow (L2). */
  claimUnrouted(call: ClaimUnroutedCall): Promise<ClaimUnroutedReply>
  /** `place` stores the placements of unrouted events and of replays (L2, L16). It is idempotent. */
  place(call: PlaceCall): Promise<PlaceReply>
  /** `settleAndClaim` settles runs, then claims lanes, in one commit (L1, L5 to L9, L12, L16, L24). It is idempotent by request. */
  settleAndClaim(call: SettleAndClaimCall): Promise<SettleAndClaimReply>
  /** `renew` extends leases. With `commit`, nothing can cancel the run any more (L1, L6c). */
  renew(call: RenewCall): Promise<RenewReply>
  /** `leasePermits` shares n permits among processes (L20). */
  leasePermits(call: LeasePermitsCall): Promise<LeasePermitsReply>
  /** `steer` applies what an operator or maintenance does to lanes, dead letters, unrouted events or flows (L9, L14). */
  steer(call: SteerCall): Promise<SteerReply>
  /** `purge` removes everything that one lane, tenant or event holds (L15). */
  purge(call: PurgeCall): Promise<PurgeReply>
  /** `reserve` reserves slots of limits (M1, M2, M5). A repeated ticket confirms its slot. */
  reserve(call: ReserveCall): Promise<ReserveReply>
  /** `regulate` pauses, resumes or corrects a limit, or returns a slot (M3, M7). */
  regulate(call: RegulateCall): Promise<RegulateReply>
  /** `updatePressure` reads and raises the levels of adaptive windows (L22). */
  updatePressure(call: UpdatePressureCall): Promise<UpdatePressureReply>
  /** `maintain` applies retention and other maintenance within a time budget. Any process may call it (L3, L23). */
  maintain(call: MaintainCall): Promise<MaintainReply>
  /** `listen` subscribes to hints and returns the function that unsubscribes. Hints follow the commit and may get lost. */
  listen(listener: (hint: Hint) => void): () => void
  close(): Promise<void>
}

/** `Reply` is part of every reply: the store's clock and the epoch of its routes. */
export interface Reply {
  readonly now: Millis
  readonly routes: number
}

export type Hint =
  /** An event entered a lane that had no waiting events and no run. Only the process that wrote the event gets this hint. */
  | { readonly kind: 'opened'; readonly flow: string; readonly key: string }
  | { readonly kind: 'due'; readonly flow: string }
  | { readonly kind: 'cancel'; readonly lane: LaneId; readonly token: number }
  | { readonly kind: 'limit'; readonly name: string }
  | { readonly kind: 'routes' }
  /** Another process has a live view open. For some seconds, this process shares its feed entries with it. */
  | { readonly kind: 'watched' }

// append

export interface AppendCall {
  /** The epoch by which the events were routed. The store rejects an old epoch (L18). */
  readonly routes: number
  readonly events: readonly EventToStore[]
}

export interface EventToStore extends RoutableEvent {
  readonly placements: readonly Placement[]
  readonly unrouted: readonly UnroutedFlow[]
  /** The flows that match the event but give it no placement. The store keeps them with the event. */
  readonly skips?: readonly Skip[]
}

export interface Placement extends WindowParameters {
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly group: string
  readonly cancel: boolean
}

export type UnroutedReason = 'outbox' | 'slot' | 'unknown-flow' | RoutingFault | 'fan-out' | 'routes-old'

/** `flow` is '' if the event has not been routed at all. */
export interface UnroutedFlow {
  readonly flow: string
  readonly reason: UnroutedReason
  readonly error: string
}

export type AppendResult =
  | { readonly kind: 'stored' }
  /** The same event with the same id: a repeated call after a lost reply. */
  | { readonly kind: 'repeated' }
  | { readonly kind: 'duplicate'; readonly of: string }
  /** The same identity with other bytes. The event is not stored; it is counted and shown. */
  | { readonly kind: 'conflict'; readonly of: string }
  | { readonly kind: 'routes-old' }
  /** This item cannot be stored as it is. The other items of the call are stored. */
  | { readonly kind: 'refused'; readonly field: string; readonly fix: string }

export interface AppendReply extends Reply {
  readonly results: readonly AppendResult[]
}

// claimUnrouted and place

export interface ClaimUnroutedCall {
  readonly n: number
  readonly lease: Millis
  readonly reasons: readonly UnroutedReason[]
  /** The flows whose unrouted events the call leases. It also leases events without a flow. */
  readonly flows: readonly string[]
  /** Flows that other processes serve. Outbox events for flows that are in neither list become `unknown-flow`. */
  readonly elsewhere?: readonly string[]
}

export interface LeasedUnroutedEvent extends UnroutedFlow {
  readonly id: number
  readonly token: number
  readonly tries: number
  readonly event: Event
}

/** `OutboxEvent` is an event that was published inside a user's own transaction, with the result of storing it now (L17). */
export interface OutboxEvent extends Pick<Event, 'id' | 'source' | 'type'> {
  readonly result: AppendResult
  readonly unrouted: readonly UnroutedFlow[]
}

export interface ClaimUnroutedReply extends Reply {
  readonly unrouted: readonly LeasedUnroutedEvent[]
  /** The events taken from the outbox. The stored ones are unrouted events from now on. */
  readonly takenFromOutbox: readonly OutboxEvent[]
}

export type PlaceItem =
  | {
      readonly kind: 'unrouted'
      readonly id: number
      readonly token: number
      readonly placements: readonly Placement[]
      readonly unrouted: readonly (UnroutedFlow & { readonly after: Millis })[]
      /** The flows that turned out to give the event no placement. */
      readonly skips?: readonly Skip[]
      /** The event is encrypted, so the errors of its unrouted records may quote it. */
      readonly confidential?: boolean
    }
  | {
      readonly kind: 'replay'
      readonly replay: string
      readonly event: string
      readonly placements: readonly Placement[]
      /** Only into lanes in which the event has never been. */
      readonly once?: boolean
    }

export interface PlaceCall {
  readonly routes: number
  readonly items: readonly PlaceItem[]
}

export interface PlaceReply extends Reply {
  /** `already`: placed by an earlier call; `gone`: the event was purged or has expired. */
  readonly results: readonly ('placed' | 'already' | 'lost' | 'gone' | 'routes-old')[]
}

// settleAndClaim and renew

export interface SettleAndClaimCall {
  readonly process: string
  /** The number of the call, which counts up in each process. A call repeated with the same number returns the same reply. */
  readonly request: number
  /** The epoch by which published events were routed. 0 is valid when nothing is published. */
  readonly routes: number
  readonly settle: readonly Settlement[]
  readonly claim: readonly ClaimRequest[]
  /** The most bytes of bodies in the reply. The reply omits further bodies; `readBodies` fetches them. */
  readonly budget: number
}

export interface Settlement extends RunEndOptions {
  readonly lane: LaneId
  readonly token: number
  readonly outcome: RunOutcome
  /** The failed attempt to add to the run's history. */
  readonly attempt: Attempt | undefined
  /** The events that the handler published: stored in the same commit, or not at all (L2b). */
  readonly publish: readonly EventToStore[]
  /** The run has encrypted events, so its texts may quote them. A store keeps the texts unchanged. */
  readonly confidential?: boolean
}

export interface ClaimRequest extends ClaimCaps {
  readonly flow: string
  readonly maxRuns: number
  /** How many of `maxRuns` may be lanes whose last attempt failed (L24). */
  readonly maxFailing: number
  /** How many suspects this process may claim (L12). */
  readonly maxSuspects: number
  /** The most live runs of one group, with `share` (L5g). Undefined: all lanes share one queue. */
  readonly maxPerGroup: number | undefined
  /** Whether a run that crashes once too often blocks its lane (L9), and whether it is announced. */
  readonly blockOnCrash: boolean
  readonly announceDeadAfter?: DeathNotice | undefined
}

export type SettleResult = 'ok' | 'lost' | 'purged'

export interface LeasedRun {
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
  readonly runId: string
  readonly parent: string
  readonly token: number
  readonly rank: Rank
  readonly isDeadLetter: boolean
  /** The replay that its events belong to; '' for live events. */
  readonly replay: string
  readonly tries: number
  readonly lapses: number
  /** The time at which the first attempt failed; 0 before. */
  readonly failingSince: Millis
  readonly snoozedSince: Millis
  readonly stateBase64: string
  readonly due: Millis
  /** The end of the lease. A repeated claim returns the same lease and does not extend it. */
  readonly until: Millis
  readonly events: readonly ClaimedEvent[]
  /** How many events ended because `take` passed over them. */
  readonly superseded: number
}

/** `ClaimedEvent` is an event of a run. `body` is undefined if the reply's byte budget was used up. */
export interface ClaimedEvent extends Omit<Event, 'body'> {
  readonly body: Uint8Array | undefined
}

export interface FlowDeadline {
  readonly flow: string
  /**
   * The flow's next deadline, past or future, among the lane healths for which the claim had slots (all healths if it had none).
   * Undefined if none of these lanes has a deadline. After many postponements, the value may be earlier than the true one; the next call
   * then returns another. If the claim got all its runs, the value is now, because more lanes may be ready.
   */
  readonly due: Millis | undefined
}

/** `UnstoredPublish` is a published event that the store did not add as new. `settle` and `publish` are indexes in the call. */
export interface UnstoredPublish {
  readonly settle: number
  readonly publish: number
  readonly result: Exclude<AppendResult, { readonly kind: 'stored' } | { readonly kind: 'routes-old' }>
}

export interface SettleAndClaimReply extends Reply {
  readonly settled: readonly SettleResult[]
  /** Every other event that a settlement with the result `ok` published is stored (L2b, L10). */
  readonly unstored: readonly UnstoredPublish[]
  readonly claimed: readonly LeasedRun[]
  /** The runs that this call found to have lapsed once too often. */
  readonly crashed: readonly { readonly lane: LaneId; readonly run: string }[]
  readonly nextDeadlines: readonly FlowDeadline[]
}

export interface RenewCall {
  readonly lease: Millis
  readonly runs: readonly { readonly lane: LaneId; readonly token: number; readonly commit: boolean }[]
}

export interface RenewReply extends Reply {
  readonly results: readonly ('ok' | 'cancel' | 'lost' | 'purged')[]
}

// permits

export interface LeasePermitsCall {
  readonly process: string
  readonly lease: Millis
  readonly requests: readonly { readonly name: string; readonly want: number; readonly max: number }[]
}

export interface LeasePermitsReply extends Reply {
  readonly granted: readonly number[]
}

// steer

export type SteerCall =
  | { readonly what: 'lanes'; readonly ids: readonly LaneId[]; readonly act: LaneAction }
  | { readonly what: 'dead'; readonly ids: readonly string[]; readonly act: 'retry' | 'drop' | 'unblock' }
  | { readonly what: 'unrouted'; readonly ids: readonly number[]; readonly act: 'retry' | 'drop' }
  | { readonly what: 'flows'; readonly ids: readonly string[]; readonly act: FlowAction }

export type LaneAction =
  | { readonly kind: 'run-now' | 'cancel' | 'unhold' | 'drop' }
  | { readonly kind: 'hold'; readonly reason: string; readonly by: string; readonly for: Millis }

type FlowAction = { readonly kind: 'resume' } | { readonly kind: 'pause'; readonly reason: string; readonly by: string }

export interface SteerReply extends Reply {
  /** `already`: nothing to change; `running`: a live run prevents the action. */
  readonly results: readonly ('ok' | 'already' | 'missing' | 'running')[]
}

// limits

export interface ReserveCall {
  readonly requests: readonly {
    readonly ticket: string
    readonly limits: readonly (LimitParameters & { readonly name: string })[]
    /** For a new ticket: do not take a slot that is further away than this (M6). */
    readonly maxWait: Millis
  }[]
}

export type Reservation =
  /** The slot must be used within `freshFor` after the wait, by the caller's monotonic clock since the request (M1). */
  | { readonly kind: 'granted'; readonly wait: Millis; readonly freshFor: Millis; readonly epoch: number }
  /**
   * The next slot is beyond `maxWait` and was not taken. `wait` says when to ask again: callers get one time after the other, as
   * slots become free. No slot is kept for them: any caller that asks when a slot is near enough gets it (M6). `recheckAfter`
   * equals `wait`, but is much sooner in a long pause, for callers for which an early request costs nothing: the pause may be
   * ended.
   */
  | { readonly kind: 'far'; readonly wait: Millis; readonly recheckAfter: Millis }
  | { readonly kind: 'refused'; readonly limit: string }

export interface ReserveReply extends Reply {
  readonly results: readonly Reservation[]
}

export interface RegulateCall {
  readonly name: string
  readonly act:
    | { readonly kind: 'pause'; readonly for: Millis; readonly slow: boolean }
    | { readonly kind: 'resume' }
    | { readonly kind: 'release'; readonly ticket: string }
    | { readonly kind: 'observe'; readonly numbers: LimitParameters; readonly used: number; readonly resetsIn: Millis }
    /** `cost` calls were made now, beside those of the slots. */
    | { readonly kind: 'charge'; readonly numbers: LimitParameters }
}

export interface RegulateReply extends Reply {
  readonly epoch: number
  readonly pausedFor: Millis
  /** Only for `release`: whether the slot could be returned. */
  readonly released: boolean
}

export interface UpdatePressureCall {
  readonly flows: readonly { readonly flow: string; readonly raise: boolean }[]
}

export interface UpdatePressureReply extends Reply {
  readonly levels: readonly number[]
}

// maintain

export interface MaintainCall {
  readonly budget: Millis
  readonly policy: RetentionPolicy
}

export interface RetentionPolicy {
  /** How long finished work is kept: events by source, runs by flow, with '' for all others. */
  readonly events: Readonly<Record<string, Millis>>
  readonly runs: Readonly<Record<string, Millis>>
  readonly deadLetters: Millis
  /** The most bytes the store may take. The oldest finished events are removed first. */
  readonly bytes: number
  /** The most waiting lanes of one tenant, by flow. Beyond it, the tenant's oldest window is due at once (L3). */
  readonly lanesPerTenant: Readonly<Record<string, number>>
}

export interface MaintainReply extends Reply {
  readonly counts: {
    readonly events: number
    readonly runs: number
    readonly deadLetters: number
    readonly lanes: number
  }
  readonly more: boolean
}
