// `Run` is what a handler receives: the events of its run and the functions it may call while it works.
import type { Millis } from '../clock.ts'
import type { Ending } from '../model/endings.ts'
import type { Event, EventInput, PublishTarget } from '../model/event.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { findDefinition } from '../model/typed-event.ts'
import type { RunLog } from '../observe/log/log.ts'
import type { ClaimedEvent } from '../store/contract/index.ts'
import type { LiveRun } from './live-run.ts'

/** A run may be destructured. A copy (`{ ...run }`) lacks `signal` and `log`, which are created on first use. */
export interface Run<E extends FlowEvent = FlowEvent> {
  readonly flow: string
  readonly key: string
  readonly tenant: string | undefined
  /** The same in all attempts. Use it as the idempotency key of side effects. */
  readonly id: string
  /** Counted from 1. */
  readonly attempt: number
  /** The id of the replay that the events belong to; undefined for live events. */
  readonly replay: string | undefined
  readonly events: readonly E[]
  /** The state that the last `snooze` stored. */
  readonly state: unknown
  /** Aborts when the run is cancelled, times out, is stopped or purged, or loses its lease. */
  readonly signal: AbortSignal
  readonly log: RunLog
  /**
   * `commit` marks the run's point of no return, before a side effect that cannot be undone. After `ok`, no newer event cancels the run.
   * After `cancelled`, the run gives its events back, however the handler ends.
   */
  readonly commit: () => Promise<'ok' | 'cancelled'>
  /**
   * `publish` stores the events in the commit that settles the run, and only if the attempt ends well. With `at` they are published then,
   * and with `to` only to these flows or to one endpoint.
   */
  readonly publish: (event: EventInput | readonly EventInput[], target?: PublishTarget) => void
  /** `sleep` resolves after the duration. It rejects as soon as the run's signal aborts, e.g. when a newer event cancels the run. */
  readonly sleep: (duration: Duration) => Promise<void>
  readonly count: (name: string, by?: number) => void
  /** `extend` restarts the timeout of the attempt with this duration. */
  readonly extend: (by: Duration) => void
}

/** `Handler` is the function that a flow runs. */
export type Handler<E extends FlowEvent = FlowEvent> = (run: Run<E>) => Ending | void | Promise<Ending | void>

/** `PublishedEvent` is an event that a handler published, with its target. */
export interface PublishedEvent extends PublishTarget {
  readonly input: EventInput
}

/** `RunControls` is what the functions of a run act on: the attempt that called the handler. */
export interface RunControls {
  readonly live: LiveRun
  readonly flow: Pick<Flow, 'definitions'>
  readonly log: RunLog
  commit(): Promise<'ok' | 'cancelled'>
  publish(events: readonly EventInput[], target: PublishTarget | undefined): void
  count(name: string, by: number): void
  extend(by: Millis): void
}

/**
 * `HandledRun` is a class although it has no methods. If many object literals live at once, V8 allocates them in the old generation, where
 * they and everything they reference stay until a full collection (decision 13).
 */
export class HandledRun implements Run {
  readonly flow: string
  readonly key: string
  readonly tenant: string | undefined
  readonly id: string
  readonly attempt: number
  readonly replay: string | undefined
  readonly events: readonly FlowEvent[]
  readonly state: unknown
  /** When the first attempt failed; 0 if none has. */
  readonly failingSince: Millis
  readonly #controls: RunControls
  readonly commit: Run['commit']
  readonly publish: Run['publish']
  readonly sleep: Run['sleep']
  readonly count: Run['count']
  readonly extend: Run['extend']

  constructor(controls: RunControls, bodies: readonly (Uint8Array | undefined)[]) {
    const { live, flow } = controls
    const { lease } = live
    this.flow = lease.flow
    this.key = lease.key
    this.tenant = lease.tenant === '' ? undefined : lease.tenant
    this.id = lease.runId
    this.attempt = lease.tries + 1
    this.replay = lease.replay === '' ? undefined : lease.replay
    this.events = lease.events.flatMap((event, at) => {
      const whole = hasBody(event) ? event : { ...event, body: bodies[at] }
      return hasBody(whole) ? new FlowEvent(whole, findDefinition(flow.definitions, event)) : []
    })
    this.state = live.storedState.state
    this.failingSince = lease.failingSince
    this.#controls = controls
    // These are own properties, because handlers destructure their run.
    this.commit = () => controls.commit()
    this.publish = (event, target) => controls.publish(isList(event) ? event : [event], target)
    this.sleep = (duration) => live.sleep(parseDuration(duration, 'run.sleep'))
    this.count = (name, by = 1) => controls.count(name, by)
    this.extend = (by) => controls.extend(parseDuration(by, 'run.extend'))
  }

  get signal(): AbortSignal {
    return this.#controls.live.signal
  }

  get log(): RunLog {
    return this.#controls.log
  }
}

/** `hasBody` returns whether the reply to the claim brought the body of the event. */
export function hasBody(event: ClaimedEvent): event is Event {
  return event.body !== undefined
}

function isList(event: EventInput | readonly EventInput[]): event is readonly EventInput[] {
  return Array.isArray(event)
}
