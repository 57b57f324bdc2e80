// `Run` is what a handler receives: the events of its run and the functions it may call while it works.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Ending } from '../model/endings.ts'
import type { EventInput, PublishTarget } from '../model/event.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { findDefinition } from '../model/typed-event.ts'
import type { RunLog } from '../observe/log/log.ts'
import type { LiveRun } from './live-run.ts'

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

/** `HandlerOutput` is what a handler produced besides its ending. */
export interface HandlerOutput {
  readonly published: readonly PublishedEvent[]
  readonly counts: Readonly<Record<string, number>>
}

interface RunDependencies {
  readonly live: LiveRun
  readonly flow: Pick<Flow, 'definitions'>
  readonly bodies: readonly (Uint8Array | undefined)[]
  readonly log: RunLog
  readonly commit: () => Promise<'ok' | 'cancelled'>
  readonly extend: (by: number) => void
  /** Throws for an event whose definition rejects its data. */
  readonly assertPublishable: (event: EventInput) => void
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
  readonly signal: AbortSignal
  readonly log: RunLog
  readonly commit: Run['commit']
  readonly publish: Run['publish']
  readonly sleep: Run['sleep']
  readonly count: Run['count']
  readonly extend: Run['extend']

  constructor(
    { live, flow, bodies, log, commit, extend, assertPublishable }: RunDependencies,
    output: OutputCollector,
  ) {
    const { lease } = live
    this.flow = lease.flow
    this.key = lease.key
    this.tenant = lease.tenant === '' ? undefined : lease.tenant
    this.id = lease.runId
    this.attempt = lease.tries + 1
    this.replay = lease.replay === '' ? undefined : lease.replay
    this.events = lease.events.flatMap((event, at) => {
      const body = event.body ?? bodies[at]
      return body === undefined ? [] : new FlowEvent({ ...event, body }, findDefinition(flow.definitions, event))
    })
    this.state = live.storedState.state
    this.failingSince = lease.failingSince
    this.signal = live.signal
    this.log = log
    this.commit = commit
    // These are own properties, because handlers destructure their run.
    this.publish = (event, target) => {
      if (output.isClosed) throw publishedTooLate()
      const inputs = isList(event) ? event : [event]
      for (const input of inputs) assertPublishable(input)
      for (const input of inputs) output.published.push({ ...target, input })
    }
    this.sleep = (duration) => live.sleep(parseDuration(duration, 'run.sleep'))
    this.count = (name, by = 1) => void (output.counts[name] = (output.counts[name] ?? 0) + by)
    this.extend = (by) => extend(parseDuration(by, 'run.extend'))
  }
}

export interface OutputCollector {
  readonly published: PublishedEvent[]
  readonly counts: Record<string, number>
  /** After the attempt, no settlement would store further events. */
  isClosed: boolean
}

function isList(event: EventInput | readonly EventInput[]): event is readonly EventInput[] {
  return Array.isArray(event)
}

function publishedTooLate(): SluiceError {
  const what = 'run.publish: the run is over; nothing was published.'
  return new SluiceError('CONFLICT', what, undefined, 'Publish before the handler returns.')
}
