// `Flow` is a flow as the stages use it: which events it takes, their key, window, rate and retries, and the handler.
// flow/options.ts builds it from the user's options, after it has checked them.
import type { Millis } from '../clock.ts'
import type { FlowEvent } from './flow-event.ts'
import type { WindowParameters } from './place.ts'
import type { TypedEvent } from './typed-event.ts'

/** `WhileRunning` says what an event does that arrives while its lane runs (L6, L6c). */
export type WhileRunning = 'window' | 'requeue' | 'cancel'

export interface FailedAttempt {
  /** The number of failures so far, including this one. */
  readonly failures: number
  /** The time since the first failure. */
  readonly elapsed: Millis
  /** A random number in [0, 1). */
  readonly random: number
  /** The delay that the other side asked for. It can make the delay longer, but never shorter. */
  readonly requestedDelay?: Millis | undefined
}

export interface Flow {
  readonly name: string
  /** The three functions of the user that route an event. Each may throw (L2a). */
  matches(event: FlowEvent): boolean
  /** Undefined: the flow has no `key`, and each event is a lane of its own. */
  readonly selectKeys: ((event: FlowEvent) => unknown) | undefined
  computeWindow(event: FlowEvent, level: number): WindowParameters
  /** The globs of the flow's events, which other processes use for routing; undefined for a predicate. */
  readonly globs: readonly string[] | undefined
  /** The filter over the content as data, which other processes use for routing too. `matches` includes it. */
  readonly where?: object
  /** The typed events of `on`; empty for globs and a predicate. */
  readonly definitions: readonly TypedEvent[]
  /** The flow is a delivery. It gets a received event only if one of its globs names the event's source. */
  readonly isDelivery: boolean
  /** The lanes of a tenant take turns with those of others (L5g). */
  readonly share: 'tenant' | undefined
  /** The most live runs over all processes (L20), or of one group with `share`. Infinity: unbounded. */
  readonly concurrency: number
  readonly take: 'all' | 'first' | 'last'
  readonly maxEvents: number
  readonly maxBytes: number
  /** May throw, like the functions of `FlowRouting`. */
  readonly whileRunning: (event: FlowEvent) => WhileRunning
  /** How long a lane remembers the end of its last run: the `quiet` of a `leading` window. */
  readonly rememberFor: (events: readonly FlowEvent[]) => Millis
  /** The engine declared the flow for itself. It gets events that no other flow gets. */
  readonly isInternal: boolean
  readonly timeout: Millis
  /** Undefined: no further attempt. */
  readonly retryDelay: (failed: FailedAttempt) => Millis | undefined
  readonly maxAttempts: number
  readonly onDead: 'continue' | 'block'
  /** The `quiet` of an adaptive window at level 0 (L22). */
  readonly adaptiveBaseQuiet: Millis | undefined
  readonly retention: Millis
  readonly maxLanesPerTenant: number
  /** Returns whether live events get no deadline in the lane of this key yet: its endpoint is sent its history first. */
  readonly holdsBack?: (key: string) => boolean
  readonly run: (run: never) => unknown
}

/** `NOT_SERVED_HERE` is the error of an event whose sender named a flow that the storing process does not serve. */
export const NOT_SERVED_HERE = 'It was named by the sender; this process does not serve it.'
