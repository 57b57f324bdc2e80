// What is known about a lane at one moment, as data: everything the sentence says, with exact figures.
import type { Millis } from '../clock.ts'
import type { LaneState } from '../model/lane-states.ts'

/** Times are the store's, in whole milliseconds; undefined is "not so", "never" or "not known". */
export interface ExplanationFacts extends RecordFacts, LineFacts, HindranceFacts, PastFacts, FlowFacts {
  readonly flow: string
  readonly key: string
  readonly state: LaneState | 'empty' | 'unknown-flow'
}

/** What the lane's record alone says. */
export interface RecordFacts extends RunFacts {
  /** The state of the lane itself, also when its flow is not declared here. */
  readonly laneState: LaneState | 'empty'
  /** The state it would have without its hold. */
  readonly behindHold: LaneState | undefined
  readonly now: Millis
  /** When something is due, whatever it is; `in` is the time until then, below 0 when it has passed. */
  readonly deadline: Millis | undefined
  readonly in: Millis | undefined
  /** No event moves the window of what waits beyond this. */
  readonly latest: Millis | undefined
  /** Live events, without those of the run. */
  readonly waiting: number
  readonly replays: number
  /** Dead letters that were queued by hand. */
  readonly queued: number
  /** What waits was left over by the run and is due when that ends. */
  readonly leftOver: boolean
  readonly ended: Millis | undefined
  readonly keptUntil: Millis | undefined
  readonly heldBy: string | undefined
  readonly holdReason: string | undefined
  readonly heldUntil: Millis | undefined
  readonly holdOver: boolean
}

export interface RunFacts {
  readonly run: string | undefined
  readonly kind: 'live' | 'replay' | 'letter' | undefined
  /** Counted from 1: the one that runs, or the next one. */
  readonly attempt: number | undefined
  /** Those that failed. */
  readonly tries: number | undefined
  readonly triesOf: number | undefined
  readonly triesLeft: number | undefined
  readonly nextTry: Millis | undefined
  /** When the run was first claimed: attempts and lapses do not change it. */
  readonly started: Millis | undefined
  readonly leaseEnds: Millis | undefined
  readonly events: number | undefined
  /** Lapses of the run, the one just found included. */
  readonly lapses: number | undefined
  readonly error: string | undefined
  readonly againSince: Millis | undefined
  /** The limit that put the run off: its slot was too far away. */
  readonly putOffBy: string | undefined
  readonly cancelAsked: boolean
  readonly purged: boolean
}

/** Where a lane stands whose deadline has passed; all undefined for others. */
export interface LineFacts {
  readonly line: 'healthy' | 'failing' | 'suspect' | undefined
  /** Groups take turns: the place is that among the lanes of this one. */
  readonly group: string | undefined
  readonly position: number | undefined
  readonly ahead: number | undefined
  /** False: not all lanes were looked at, and there may be more ahead. */
  readonly aheadExact: boolean | undefined
  /** Of its group. */
  readonly liveInGroup: number | undefined
}

/** What else keeps it from its turn. */
export interface HindranceFacts {
  /** The dead letter it waits for. */
  readonly blockedBy: string | undefined
  readonly blockedSince: Millis | undefined
  readonly blockedReason: string | undefined
  readonly blockedTries: number | undefined
  /** The dead letter that runs next because somebody said so. */
  readonly queuedLetter: string | undefined
  readonly pausedBy: string | undefined
  readonly pauseReason: string | undefined
  readonly pausedSince: Millis | undefined
  /** All slots of the flow, or of the lane's group, are taken, by whichever process. */
  readonly full: boolean
  /** All runs that this process may have at once are under way. */
  readonly processFull: boolean
  /** An earlier handler of the lane has not returned in this process, though its run is over. */
  readonly lingers: boolean
  readonly limit: string | undefined
  readonly limitIn: Millis | undefined
  readonly limitPausedFor: Millis | undefined
}

/** How it went before; looked for only when nothing is there. */
export interface PastFacts {
  /** The newest one on record. */
  readonly lastRun: string | undefined
  readonly lastRunKind: string | undefined
  readonly lastRunEnded: Millis | undefined
  /** Dead letters of this lane; not exact: at least so many. */
  readonly dead: number | undefined
  readonly deadExact: boolean | undefined
}

export interface FlowFacts {
  readonly declared: boolean
  readonly served: boolean
  /** Undefined without one. */
  readonly concurrency: number | undefined
  /** The level of an adaptive window, and the quiet that an event gets now. */
  readonly pressure: number | undefined
  readonly quiet: Millis | undefined
  /** Undefined for a predicate, or when the flow is not declared here. */
  readonly globs: readonly string[] | undefined
  /** False: each event is a lane of its own. */
  readonly keyed: boolean
}
