// Flows that the engine declares for itself: what waits for its time, and replays, are lanes like any other.
import type { Millis } from './clock.ts'
import { makeLimit, type LimitParts } from './limit/limit.ts'
import type { EventInput } from './model/event-input.ts'
import type { Flow } from './model/flow.ts'
import type { FlowEvent } from './model/flow-event.ts'
import type { AnyListener } from './observe/events.ts'
import { replayPage, type ReplayPageParts } from './operate/replay-page.ts'
import type { ReplayRecord } from './operate/replay-record.ts'
import { REPLAY_FLOW } from './operate/replays.ts'
import { DELAYED, dueAt, idInside, unwrapped } from './receive/delayed.ts'
import { placesIn, type Routes } from './receive/route.ts'
import type { Run } from './run/run.ts'
import { flow } from './schedule/flow.ts'
import type { Store } from './store/contract/index.ts'

/** Each until its time in the lane of the id that it will have: by that a purge finds it. Then it is published. */
export function delayedFlow(now: () => Millis): Flow {
  const window = (event: FlowEvent): { quiet: Millis; max: Millis } => {
    const wait = Math.max(0, dueAt(event) - now())
    return { quiet: wait, max: wait }
  }
  return { ...flow<Run>(DELAYED, { on: isDelayed, key: idInside, window, run: publishIt }), internal: true }
}

function isDelayed(event: FlowEvent): boolean {
  return event.source === DELAYED
}

/** An id that was given twice is one event: that of the earlier moment. */
function publishIt(run: Run): void {
  run.publish(run.events.toSorted((one, other) => dueAt(one) - dueAt(other)).map(unwrapped))
}

/** Those of an alert. The globs are for other processes: they ask no predicate, and would keep every event of theirs for it. */
export function alertFlow(name: string, notify: (run: Run) => unknown): Flow {
  const on = (event: FlowEvent): boolean => event.source === 'sluice' && event.subject === name
  return { ...flow<Run>(`alert/${name}`, { on, key: () => name, run: notify }), globs: ['sluice/alert.*'] }
}

export interface ReplayFlowParts {
  readonly store: () => Promise<Store>
  readonly flows: ReadonlyMap<string, Flow>
  readonly routes: () => Routes
  readonly epoch: () => number
  readonly refresh: () => Promise<void>
  readonly limits: LimitParts
  readonly step: (of: ReplayRecord) => Promise<unknown>
  readonly emit: AnyListener
}

/** The lane of a replay is its id. */
export function replayFlow({ store, flows, routes, epoch, refresh, limits, step, emit }: ReplayFlowParts): Flow {
  const parts: ReplayPageParts = {
    store,
    flows,
    places: (into, event) => placesIn(into, event, routes()),
    epoch,
    refresh,
    paced: ({ id, rate, per }, cost, call) => makeLimit(REPLAY_FLOW, { rate, per }, limits).per(id).run(call, { cost }),
    step,
    emit,
  }
  return {
    ...flow<Run>(REPLAY_FLOW, { on: isStep, key: replayOf, run: (one) => replayPage(parts, one) }),
    internal: true,
  }
}

function isStep(event: FlowEvent): boolean {
  return event.source === REPLAY_FLOW
}

function replayOf(event: FlowEvent): string | undefined {
  return event.subject
}

/** Its dedupe id makes a step that is published twice one step. */
export function replayStep({ id, started, step }: ReplayRecord): EventInput {
  return { type: 'step', source: REPLAY_FLOW, subject: id, dedupeId: `${id}/${started}/${step}`, data: { step } }
}
