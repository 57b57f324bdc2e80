// What a handler is given: the events of its run, and what it may ask for while it works.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event-input.ts'
import { millis, type Duration } from '../model/duration.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { RunLog } from '../observe/log.ts'
import type { LiveRun } from './live-run.ts'

export interface Run {
  readonly flow: string
  readonly key: string
  readonly tenant: string | undefined
  /** The same over all attempts: the key for whatever must not happen twice. */
  readonly id: string
  /** Counted from 1. */
  readonly attempt: number
  readonly events: readonly FlowEvent[]
  /** What `again` kept the last time. */
  readonly state: unknown
  /** Aborted when the run is cancelled, out of time, stopped, purged, or has lost its lease. */
  readonly signal: AbortSignal
  readonly log: RunLog
  /** Before an effect that cannot be taken back: from `ok` on no newer event cancels the run. */
  commit(): Promise<'ok' | 'cancelled'>
  /** Stored together with the run's good end, or not at all. */
  publish(event: EventInput | readonly EventInput[]): void
  count(name: string, by?: number): void
  /** More time than the flow's timeout, from now on. */
  extend(by: Duration): void
}

/** What a handler left behind, beside its ending. */
export interface Left {
  readonly published: readonly EventInput[]
  readonly counts: Readonly<Record<string, number>>
}

interface RunParts {
  readonly live: LiveRun
  readonly bodies: readonly (Uint8Array | undefined)[]
  readonly log: RunLog
  readonly commit: () => Promise<'ok' | 'cancelled'>
  readonly extend: (by: number) => void
}

/**
 * A class, though it has no methods: V8 comes to make literals of which many live at once where nothing is collected until all is,
 * and everything that they point to stays with them (decision 13).
 */
export class HandledRun implements Run {
  readonly flow: string
  readonly key: string
  readonly tenant: string | undefined
  readonly id: string
  readonly attempt: number
  readonly events: readonly FlowEvent[]
  readonly state: unknown
  /** When its first attempt failed; 0: none has. */
  readonly failingSince: Millis
  readonly signal: AbortSignal
  readonly log: RunLog
  readonly commit: Run['commit']
  readonly publish: Run['publish']
  readonly count: Run['count']
  readonly extend: Run['extend']

  constructor({ live, bodies, log, commit, extend }: RunParts, left: LeftSoFar) {
    const { lease } = live
    this.flow = lease.flow
    this.key = lease.key
    this.tenant = lease.tenant === '' ? undefined : lease.tenant
    this.id = lease.run
    this.attempt = lease.tries + 1
    this.events = lease.events.flatMap((event, at) => {
      const body = event.body ?? bodies[at]
      return body === undefined ? [] : new FlowEvent({ ...event, body })
    })
    this.state = live.kept.state
    this.failingSince = lease.failingSince
    this.signal = live.signal
    this.log = log
    this.commit = commit
    // Handlers take them out of their run.
    this.publish = (event) => {
      if (left.isOver) throw new SluiceError('NOT_POSSIBLE', 'run.publish: the run is over; nothing was published.')
      for (const one of isList(event) ? event : [event]) left.published.push(one)
    }
    this.count = (name, by = 1) => void (left.counts[name] = (left.counts[name] ?? 0) + by)
    this.extend = (by) => extend(millis(by, 'run.extend'))
  }
}

export interface LeftSoFar {
  readonly published: EventInput[]
  readonly counts: Record<string, number>
  /** Whatever is published from now on would be stored with nothing. */
  isOver: boolean
}

function isList(event: EventInput | readonly EventInput[]): event is readonly EventInput[] {
  return Array.isArray(event)
}
