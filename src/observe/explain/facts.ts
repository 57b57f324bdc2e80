// The facts of an explanation as data: everything the sentence says, with exact numbers, at one point in time.
import type { Millis } from '../../clock.ts'
import type { LaneState } from '../../model/lane-states.ts'

/** Times are the store's, in whole milliseconds. Undefined or missing means "does not apply", "never" or "unknown". */
export interface ExplanationFacts extends LaneRecordFacts, QueueFacts, ObstacleFacts, PastFacts, SkipFacts, FlowFacts {
  readonly flow: string
  readonly key: string
  readonly state: LaneState | 'empty' | 'unknown-flow'
}

/** The facts from the lane's record alone. */
export interface LaneRecordFacts extends LaneRunFacts {
  /** The state of the lane itself, also when its flow is not declared here. */
  readonly laneState: LaneState | 'empty'
  /** The state the lane would have without its hold. */
  readonly behindHold: LaneState | undefined
  readonly now: Millis
  /** The lane's deadline. `in` is the time until then, negative once it has passed. */
  readonly deadline: Millis | undefined
  readonly in: Millis | undefined
  /** The latest end of the window: no further event moves it beyond this time. */
  readonly latest: Millis | undefined
  /** Live events, without those of the run. */
  readonly waiting: number
  readonly replays: number
  /** Dead letters that an operator queued. */
  readonly queued: number
  /** The waiting events were left over by the run and are due when it ends. */
  readonly leftOver: boolean
  readonly ended: Millis | undefined
  readonly keptUntil: Millis | undefined
  readonly heldBy: string | undefined
  readonly holdReason: string | undefined
  readonly heldUntil: Millis | undefined
  readonly holdOver: boolean
}

export interface LaneRunFacts {
  readonly run?: string | undefined
  readonly kind?: 'live' | 'replay' | 'dead-letter' | undefined
  /** Counted from 1: the current attempt, or the next one. */
  readonly attempt?: number | undefined
  /** Failed attempts. */
  readonly tries?: number | undefined
  readonly triesOf?: number | undefined
  readonly triesLeft?: number | undefined
  readonly nextTry?: Millis | undefined
  /** When the run was first claimed. Attempts and lapses do not change it. */
  readonly started?: Millis | undefined
  readonly leaseEnds?: Millis | undefined
  readonly events?: number | undefined
  /** Lapses of the run, including one that was just found. */
  readonly lapses?: number | undefined
  readonly error?: string | undefined
  readonly snoozedSince?: Millis | undefined
  /** The limit that deferred the run because its slot was too far away. */
  readonly deferredBy?: string | undefined
  readonly cancelAsked: boolean
  readonly purged: boolean
}

/** The position of a lane whose deadline has passed; all missing for other lanes. */
export interface QueueFacts {
  readonly line?: 'healthy' | 'failing' | 'suspect' | undefined
  /** Groups take turns, so the position counts among the lanes of this group. */
  readonly group?: string | undefined
  readonly position?: number | undefined
  readonly ahead?: number | undefined
  /** False if not all lanes were read: more may be ahead. */
  readonly aheadExact?: boolean | undefined
  /** Live runs of the lane's group. */
  readonly liveInGroup?: number | undefined
}

/** Other obstacles that keep the lane from being claimed. */
export interface ObstacleFacts {
  /** The dead letter that blocks the lane. */
  readonly blockedBy?: string | undefined
  readonly blockedSince?: Millis | undefined
  readonly blockedReason?: string | undefined
  readonly blockedTries?: number | undefined
  /** The dead letter that runs next because an operator queued it. */
  readonly queuedDeadLetter?: string | undefined
  readonly pausedBy?: string | undefined
  readonly pauseReason?: string | undefined
  readonly pausedSince?: Millis | undefined
  /** All permits of the flow, or of the lane's group, are taken, in any process. */
  readonly full: boolean
  /** This process already executes as many runs as it may. */
  readonly processFull: boolean
  /** Why this process cannot claim runs of the flow: the store rejects each claim in the same way. */
  readonly claimError?: string | undefined
  /** An earlier handler of the lane has not returned in this process, although its run is over. */
  readonly lingers: boolean
  readonly limit?: string | undefined
  readonly limitIn?: Millis | undefined
  readonly limitPausedFor?: Millis | undefined
}

/** The lane's past; read only when the lane has no content. */
export interface PastFacts {
  /** The newest run on record. */
  readonly lastRun?: string | undefined
  readonly lastRunKind?: string | undefined
  readonly lastRunEnded?: Millis | undefined
  /** Dead letters of this lane; a lower bound unless exact. */
  readonly dead?: number | undefined
  readonly deadExact?: boolean | undefined
}

/** Why no event arrived under the key; read only when the lane has no content. */
export interface SkipFacts {
  /** How many of the newest `skippedOf` events the flow skipped because they have no key. */
  readonly skipped?: number | undefined
  readonly skippedOf?: number | undefined
  /** The newest skipped event, and when it arrived. */
  readonly skippedLast?: string | undefined
  readonly skippedAt?: Millis | undefined
  /** The event that has the key as its id. */
  readonly event?: string | undefined
  /** Why flows did not take that event; '' if every flow that wants it did. */
  readonly eventNote?: string | undefined
}

export interface FlowFacts {
  readonly declared: boolean
  readonly served: boolean
  /** Undefined if the flow has no bound. */
  readonly concurrency: number | undefined
  /** The level of an adaptive window, and the quiet period that an event gets now. */
  readonly pressure: number | undefined
  readonly quiet: Millis | undefined
  /** Undefined for a predicate, or when the flow is not declared here. */
  readonly globs: readonly string[] | undefined
  /** False if each event has a lane of its own. */
  readonly keyed: boolean
}
