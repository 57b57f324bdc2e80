// What a handler is given: the events of its run, and what it may ask for while it works.
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

export interface RunParts {
  readonly live: LiveRun
  readonly bodies: readonly (Uint8Array | undefined)[]
  readonly kept: Kept
  readonly log: RunLog
  readonly commit: () => Promise<'ok' | 'cancelled'>
  readonly extend: (by: number) => void
}

export function runFor(parts: RunParts): { readonly run: Run; readonly left: Left } {
  const { live, bodies, kept, log, commit, extend } = parts
  const { lease } = live
  const published: EventInput[] = []
  const counts: Record<string, number> = {}
  const run: Run = {
    flow: lease.flow,
    key: lease.key,
    tenant: lease.tenant === '' ? undefined : lease.tenant,
    id: lease.run,
    attempt: lease.tries + 1,
    events: lease.events.flatMap((event, at) => {
      const body = event.body ?? bodies[at]
      return body === undefined ? [] : new FlowEvent({ ...event, body })
    }),
    state: kept.state,
    signal: live.signal,
    log,
    commit,
    publish: (event) => void published.push(...(isList(event) ? event : [event])),
    count: (name, by = 1) => void (counts[name] = (counts[name] ?? 0) + by),
    extend: (by) => extend(millis(by, 'run.extend')),
  }
  return { run, left: { published, counts } }
}

function isList(event: EventInput | readonly EventInput[]): event is readonly EventInput[] {
  return Array.isArray(event)
}

/** What is kept from one `again` to the next: the handler's state, and how many events it has published so far. */
export interface Kept {
  readonly published: number
  readonly state: unknown
  /** The limit whose slot was too far away; only for whoever asks why the run waits. */
  readonly putOffBy?: string
  /** It was put off after it had made calls: those were in vain, and must not be so for ever (M6). */
  readonly midway?: boolean
}

const STATE_BYTES_MAX = 262_144

export function keptIn(state64: string): Kept {
  if (state64 === '') return { published: 0, state: undefined }
  return JSON.parse(Buffer.from(state64, 'base64').toString()) as Kept
}

export function keptAs({ published, state, ...ours }: Kept): string {
  const text = JSON.stringify({ published, state })
  if (text.length > STATE_BYTES_MAX) throw new RangeError(`again.state is longer than ${STATE_BYTES_MAX} characters.`)
  return Buffer.from(JSON.stringify({ published, state, ...ours })).toString('base64')
}

/** The run has begun again since: it is no longer put off. */
export function notPutOff(state64: string): string {
  const { putOffBy, ...kept } = keptIn(state64)
  return putOffBy === undefined ? state64 : keptAs(kept)
}
