// A flow as the stages know it: which events, by what key, after what window, at what pace, how often, and the code.
// Made from what the user wrote by schedule/flow.ts, which has checked it.
import type { Millis } from '../clock.ts'
import type { FlowEvent } from './flow-event.ts'
import type { WindowNumbers } from './place.ts'

/** What a routed event can be asked; each may throw, for it is the user's (L2a). */
interface Routing {
  wants(event: FlowEvent): boolean
  /** Undefined: the flow has no `key`, and each event is a lane of its own. */
  readonly keysOf: ((event: FlowEvent) => unknown) | undefined
  windowOf(event: FlowEvent, level: number): WindowNumbers
}

export interface FailedTry {
  /** So far, this one included. */
  readonly failures: number
  /** Since the first of them. */
  readonly elapsed: Millis
  /** In [0, 1). */
  readonly chance: number
  /** The other side may ask for more patience, never for less. */
  readonly asked?: Millis | undefined
}

export interface Flow extends Routing {
  readonly name: string
  /** What other processes know of what it wants: the globs it was declared with; undefined for a predicate. */
  readonly globs: readonly string[] | undefined
  /** Lanes of a tenant take turns with those of others (L5g). */
  readonly share: 'tenant' | undefined
  /** Over all processes (L20); for shares, of one group. Infinity for none. */
  readonly concurrency: number
  readonly take: 'all' | 'first' | 'last'
  readonly maxEvents: number
  readonly maxBytes: number
  readonly whileRunning: 'window' | 'requeue' | 'cancel'
  /** How long a lane remembers when these last ran: the quiet of a `leading` window. */
  readonly keepFor: (events: readonly FlowEvent[]) => Millis
  /** Declared by the engine for itself: it gets what no other flow does. */
  readonly internal: boolean
  readonly timeout: Millis
  /** Undefined: no further try. */
  readonly delay: (failed: FailedTry) => Millis | undefined
  readonly tries: number
  readonly onDead: 'continue' | 'block'
  /** The `quiet` of an adaptive window at no pressure (L22). */
  readonly adaptiveFrom: Millis | undefined
  readonly retention: Millis
  readonly maxLanesPerTenant: number
  readonly run: (run: never) => unknown
}

/** Why an event waits for a flow: the sender chose it, and who stored the event does not serve it. */
export const WAS_NAMED = 'It was named by the sender; this process does not serve it.'
