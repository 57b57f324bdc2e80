// What the stages ask of a store. Every member takes one plain object and answers one, so that a call can cross a thread,
// a socket or a script unchanged; every member may be repeated after a lost reply; each item of a call is atomic by itself.
// A store knows no flows and compares no clock but its own: numbers come with the call, and every answer says what time it is.
import type { Millis } from '../../clock.ts'
import type { ClaimCaps } from '../../model/claim.ts'
import type { Event } from '../../model/event.ts'
import type { Identity, LaneId } from '../../model/identity.ts'
import type { Attempt, Rank } from '../../model/lane.ts'
import type { LimitNumbers } from '../../model/limit.ts'
import type { WindowNumbers } from '../../model/place.ts'
import type { LaneEnd, Outcome } from '../../model/settle.ts'

export interface WorkStore {
  /** L2, L3, L4, L10, L18. Resolves only once the events would survive a crash. */
  append(call: AppendCall): Promise<AppendReply>
  /** Leases marks: events that are stored but not yet in all their lanes (L2). */
  unrouted(call: UnroutedCall): Promise<UnroutedReply>
  /** Gives stored events their places: a mark that could be routed after all, or a replay (L2, L16). Idempotent. */
  place(call: PlaceCall): Promise<PlaceReply>
  /** Settles, then claims, in one commit (L1, L5 to L9, L12, L16, L24). A repeated request answers the same. */
  turn(call: TurnCall): Promise<TurnReply>
  /** Lengthens leases, and takes the run past its point of no return when asked to `commit` (L1, L6c). */
  renew(call: RenewCall): Promise<RenewReply>
  /** Shares n permits among processes (L20). */
  permits(call: PermitsCall): Promise<PermitsReply>
  /** A person, or upkeep, acts on lanes, dead letters, marks or flows (L9, L14). */
  steer(call: SteerCall): Promise<SteerReply>
  /** Removes what one lane, tenant or event holds (L15). */
  purge(call: PurgeCall): Promise<PurgeReply>
  /** Reserves slots of limits (M1, M2, M5). The same ticket again confirms its slot. */
  reserve(call: ReserveCall): Promise<ReserveReply>
  /** Pauses, corrects or gives back (M3, M7). */
  regulate(call: RegulateCall): Promise<RegulateReply>
  /** Reads and raises the levels of adaptive windows (L22). */
  pressure(call: PressureCall): Promise<PressureReply>
  /** Retention and other chores within a budget of time; any process may call it (L3, L23). */
  upkeep(call: UpkeepCall): Promise<UpkeepReply>
  /** Hints that something changed: lossy, after the commit. Nothing may depend on them. Answers how to stop. */
  listen(hear: (hint: Hint) => void): () => void
  close(): Promise<void>
}

/** On every reply: the store's clock and the epoch of its routes. */
export interface Reply {
  readonly now: Millis
  readonly routes: number
}

export type Hint =
  /** An event came into a lane that had none, waiting or running. Told where it was written, not elsewhere. */
  | { readonly kind: 'opened'; readonly flow: string; readonly key: string }
  | { readonly kind: 'due'; readonly flow: string }
  | { readonly kind: 'cancel'; readonly lane: LaneId; readonly token: number }
  | { readonly kind: 'limit'; readonly name: string }
  | { readonly kind: 'routes' }
  /** Somebody looks on in another process: for some seconds what happens here is shown there. */
  | { readonly kind: 'watched' }

// append

export interface AppendCall {
  /** The epoch by which the events were routed; an old one is refused (L18). */
  readonly routes: number
  readonly events: readonly NewEvent[]
}

export interface NewEvent extends Omit<Event, 'arrived'> {
  readonly identity: Identity
  readonly dedupeFor: Millis
  /** The request it came in, without its body; for audit. */
  readonly request: Uint8Array
  readonly places: readonly Place[]
  readonly marks: readonly Mark[]
}

export interface Place extends WindowNumbers {
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly group: string
  readonly cancel: boolean
}

export type MarkReason = 'outbox' | 'slot' | 'unknown-flow' | 'key-failed' | 'fan-out' | 'routes-old'

/** `flow` is '' when the event has not been routed at all. */
export interface Mark {
  readonly flow: string
  readonly reason: MarkReason
  readonly error: string
}

export type Appended =
  | { readonly kind: 'stored' }
  /** The same event again: our own lost reply. */
  | { readonly kind: 'repeated' }
  | { readonly kind: 'duplicate'; readonly of: string }
  /** The same identity with other bytes: kept out, counted, shown. */
  | { readonly kind: 'conflict'; readonly of: string }
  | { readonly kind: 'routes-old' }
  /** This item cannot be stored as it is; its neighbours are. */
  | { readonly kind: 'refused'; readonly field: string; readonly fix: string }

export interface AppendReply extends Reply {
  readonly results: readonly Appended[]
}

// unrouted and place

export interface UnroutedCall {
  readonly n: number
  readonly lease: Millis
  readonly reasons: readonly MarkReason[]
  /** Marks of these flows, and marks of no flow. */
  readonly flows: readonly string[]
  /** Flows that others serve. What was published to one that is neither here nor there is marked `unknown-flow`. */
  readonly elsewhere?: readonly string[]
}

export interface LeasedMark extends Mark {
  readonly id: number
  readonly token: number
  readonly tries: number
  readonly event: Event
}

/** What was published inside somebody else's transaction, and what became of it now (L17). */
export interface TakenEvent extends Pick<Event, 'id' | 'source' | 'type'> {
  readonly result: Appended
  readonly marks: readonly Mark[]
}

export interface UnroutedReply extends Reply {
  readonly marks: readonly LeasedMark[]
  /** Those that are stored have marks from now on. */
  readonly taken: readonly TakenEvent[]
}

export type PlaceItem =
  | {
      readonly kind: 'mark'
      readonly id: number
      readonly token: number
      readonly places: readonly Place[]
      /** What could not be placed even now: stays marked. */
      readonly marks: readonly (Mark & { readonly after: Millis })[]
    }
  | { readonly kind: 'replay'; readonly replay: string; readonly event: string; readonly places: readonly Place[] }

export interface PlaceCall {
  readonly routes: number
  readonly items: readonly PlaceItem[]
}

export interface PlaceReply extends Reply {
  /** `already`: done before; `gone`: the event was purged or has expired. */
  readonly results: readonly ('placed' | 'already' | 'lost' | 'gone' | 'routes-old')[]
}

// turn and renew

export interface TurnCall {
  readonly process: string
  /** Counts up in each process; a call repeated with its number answers what it answered. */
  readonly request: number
  /** The epoch by which published events were routed; 0 is fine when nothing is published. */
  readonly routes: number
  readonly settle: readonly Settle[]
  readonly claim: readonly Claim[]
  /** Bodies beyond this many bytes are left out of the answer and fetched with `bodies`. */
  readonly budget: number
}

export interface Settle extends LaneEnd {
  readonly lane: LaneId
  readonly token: number
  readonly outcome: Outcome
  /** What a failed attempt leaves behind. */
  readonly attempt: Attempt | undefined
  /** Events the handler published: stored in the same commit, or not at all (L2b). */
  readonly publish: readonly NewEvent[]
}

export interface Claim extends ClaimCaps {
  readonly flow: string
  readonly slots: number
  /** Of the slots, how many may run lanes whose last attempt failed (L24). */
  readonly failing: number
  /** How many suspects this process may take on (L12). */
  readonly suspects: number
  /** With shares: the most live runs of one group (L5g). Undefined: one line for all. */
  readonly perGroup: number | undefined
  /** Whether a run that crashes once too often blocks its lane (L9). */
  readonly block: boolean
}

export type Settled = 'ok' | 'lost' | 'purged'

export interface Lease {
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
  readonly run: string
  readonly parent: string
  readonly token: number
  readonly rank: Rank
  readonly letter: boolean
  readonly tries: number
  readonly lapses: number
  /** When its first attempt failed, 0 before. */
  readonly failingSince: Millis
  readonly againSince: Millis
  readonly state64: string
  readonly due: Millis
  /** Of the lease. A claim whose answer was lost is answered again some time later, and its leases do not begin anew. */
  readonly until: Millis
  readonly events: readonly ClaimedEvent[]
  /** Events that ended because `take` passed over them. */
  readonly superseded: number
}

/** `body` is undefined when the answer's budget was used up. */
export interface ClaimedEvent extends Omit<Event, 'body'> {
  readonly body: Uint8Array | undefined
}

export interface Head {
  readonly flow: string
  /**
   * The next deadline, past or future, of the flow's lanes in those lines for which the claim had slots (all lines if it
   * had none at all); undefined when nothing of these is waiting for time. Where a great many were pushed back it may be
   * a moment before that; it is then another one at the next turn. Where the claim has got all its slots it is now: more may
   * be ready.
   */
  readonly due: Millis | undefined
}

/** An event that a settlement published and that was not stored, or had been before; by their places in the call. */
export interface KeptOut {
  readonly settle: number
  readonly publish: number
  readonly result: Exclude<Appended, { readonly kind: 'stored' } | { readonly kind: 'routes-old' }>
}

export interface TurnReply extends Reply {
  readonly settled: readonly Settled[]
  /** Whatever else was published by a settlement that is `ok` is stored (L2b, L10). */
  readonly keptOut: readonly KeptOut[]
  readonly claimed: readonly Lease[]
  /** Runs this call found to have lapsed once too often. */
  readonly crashed: readonly { readonly lane: LaneId; readonly run: string }[]
  readonly heads: readonly Head[]
}

export interface RenewCall {
  readonly lease: Millis
  readonly runs: readonly { readonly lane: LaneId; readonly token: number; readonly commit: boolean }[]
}

export interface RenewReply extends Reply {
  readonly results: readonly ('ok' | 'cancel' | 'lost' | 'purged')[]
}

// permits

export interface PermitsCall {
  readonly process: string
  readonly lease: Millis
  readonly wants: readonly { readonly name: string; readonly want: number; readonly max: number }[]
}

export interface PermitsReply extends Reply {
  readonly granted: readonly number[]
}

// steer and purge

export type SteerCall =
  | { readonly what: 'lanes'; readonly ids: readonly LaneId[]; readonly act: LaneSteer }
  | { readonly what: 'dead'; readonly ids: readonly string[]; readonly act: 'retry' | 'drop' | 'unblock' }
  | { readonly what: 'marks'; readonly ids: readonly number[]; readonly act: 'retry' | 'drop' }
  | { readonly what: 'flows'; readonly ids: readonly string[]; readonly act: FlowSteer }

export type LaneSteer =
  | { readonly kind: 'run-now' | 'cancel' | 'unhold' | 'drop' }
  | { readonly kind: 'hold'; readonly reason: string; readonly by: string; readonly for: Millis }

export type FlowSteer =
  | { readonly kind: 'resume' }
  | { readonly kind: 'pause'; readonly reason: string; readonly by: string }

export interface SteerReply extends Reply {
  /** `already`: it was so before; `running`: a live run is in the way. */
  readonly results: readonly ('ok' | 'already' | 'missing' | 'running')[]
}

export interface PurgeCall {
  readonly what:
    | { readonly kind: 'lanes'; readonly ids: readonly LaneId[] }
    | { readonly kind: 'tenant'; readonly tenant: string }
    | { readonly kind: 'event'; readonly id: string }
  /** At most this many events in this call; call again while `more`. */
  readonly n: number
}

export interface PurgeReply extends Reply {
  readonly events: number
  readonly letters: number
  readonly runs: number
  readonly more: boolean
}

// limits

export interface ReserveCall {
  readonly requests: readonly {
    readonly ticket: string
    readonly limits: readonly (LimitNumbers & { readonly name: string })[]
    /** Of a new ticket: a slot that is further away than this is not taken (M6). */
    readonly maxWait: Millis
  }[]
}

export type Reservation =
  /** To be used within `freshFor` after the wait, by the caller's monotonic clock from when it asked; else ask anew (M1). */
  | { readonly kind: 'granted'; readonly wait: Millis; readonly freshFor: Millis; readonly epoch: number }
  /**
   * The next slot is beyond `maxWait`, and was not taken. When to ask again: those who are told this come one after the
   * other, as slots are free. Nothing is kept for them: whoever asks when a slot is near enough gets it (M6). `again`: as
   * `wait`, but in a long pause much sooner, for whom it costs nothing to ask in vain. The pause may be ended.
   */
  | { readonly kind: 'far'; readonly wait: Millis; readonly again: Millis }
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
    | { readonly kind: 'observe'; readonly numbers: LimitNumbers; readonly used: number; readonly resetsIn: Millis }
}

export interface RegulateReply extends Reply {
  readonly epoch: number
  readonly pausedFor: Millis
  /** Only of `release`: whether the slot could be given to somebody else. */
  readonly released: boolean
}

export interface PressureCall {
  readonly flows: readonly { readonly flow: string; readonly raise: boolean }[]
}

export interface PressureReply extends Reply {
  readonly levels: readonly number[]
}

// upkeep

export interface UpkeepCall {
  readonly budget: Millis
  readonly policy: RetentionPolicy
}

export interface RetentionPolicy {
  /** How long what is done is kept; by source, by flow, '' for all others. */
  readonly events: Readonly<Record<string, Millis>>
  readonly runs: Readonly<Record<string, Millis>>
  readonly letters: Millis
  /** The most bytes the store may take; the oldest finished events go first. */
  readonly bytes: number
  /** The most lanes of one tenant that may wait; beyond it the oldest window is due at once (L3). */
  readonly lanesPerTenant: Readonly<Record<string, number>>
}

export interface UpkeepReply extends Reply {
  readonly did: { readonly events: number; readonly runs: number; readonly letters: number; readonly lanes: number }
  readonly more: boolean
}
