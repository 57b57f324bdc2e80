// The flows that the engine declares itself: delayed events, alert notifications and replays use ordinary lanes.
import type { Millis } from '../clock.ts'
import { createLimit, type LimitDependencies } from '../limit/limit.ts'
import type { EventInput } from '../model/event.ts'
import type { Flow } from '../model/flow.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { runReplayPage, type ReplayPageDependencies } from '../admin/replay-page.ts'
import type { ReplayRecord } from '../admin/replay-record.ts'
import { REPLAY_FLOW } from '../admin/replays.ts'
import { DELAYED, delayedUntil, wrappedEventId, unwrapDelayed } from '../publish/delayed.ts'
import { notEncrypted, type EncryptedSources } from '../crypto/encrypted-store.ts'
import { EVERY_SOURCE } from '../publish/cron.ts'
import { placementsIn, type RouteTable } from '../publish/route.ts'
import type { AlertEvent } from '../maintain/alerts.ts'
import type { Handler, Run } from '../run/run.ts'
import { createFlow } from '../flow/options.ts'

/** A delayed event waits in a lane named after its later id, where a purge finds it. At its time it is published. */
export function delayedFlow(now: () => Millis, sources: Pick<EncryptedSources, 'requires'>): Flow {
  const window = (event: FlowEvent): { quiet: Millis; max: Millis } => {
    const wait = Math.max(0, delayedUntil(event) - now())
    return { quiet: wait, max: wait }
  }
  return {
    ...createFlow<Run>(DELAYED, { on: isDelayed, key: wrappedEventId, window, run: (run) => publishDue(run, sources) }),
    isInternal: true,
  }
}

function isDelayed(event: FlowEvent): boolean {
  return event.source === DELAYED
}

/** Two delayed events with the same id are one event, with the earlier time. */
function publishDue(run: Run, sources: Pick<EncryptedSources, 'requires'>): void {
  const due = run.events.toSorted((one, other) => delayedUntil(one) - delayedUntil(other))
  run.publish(due.map((event) => published(event, sources)))
}

/** A plaintext delayed event may be forged by anyone who can write to the store. */
function published(event: FlowEvent, sources: Pick<EncryptedSources, 'requires'>): EventInput {
  const input = unwrapDelayed(event)
  const { source = 'app' } = input
  if (event.encrypted || !sources.requires(source)) return input
  throw notEncrypted({ source })
}

/** The flow of a schedule. Ticks that waited for a run cause one run together. */
export function everyFlow(name: string, run: (run: Run) => unknown): Flow {
  const on = (event: FlowEvent): boolean => event.source === EVERY_SOURCE && event.type === name
  return { ...createFlow<Run>(`every/${name}`, { on, key: () => name, take: 'last', run }), isInternal: true }
}

type AlertRun = Run<FlowEvent<AlertEvent['data'], AlertEvent['type']>>

/** `NotifyHandler` is the option `notify` of an alert. */
type NotifyHandler = (run: AlertRun) => ReturnType<Handler>

/** The flow that notifies about an alert. Other processes cannot call its predicate; the globs keep them from routing every event to it. */
export function alertFlow(name: string, notify: NotifyHandler): Flow {
  const on = (event: FlowEvent): boolean => event.source === 'sluice' && event.subject === name
  return { ...createFlow<AlertRun>(`alert/${name}`, { on, key: () => name, run: notify }), globs: ['sluice/alert.*'] }
}

export interface ReplayFlowDependencies
  extends Omit<ReplayPageDependencies, 'placementsFor' | 'atReplayRate'>, RouteTable {
  readonly limits: LimitDependencies
}

/** The key of a replay's lane is the id of the replay. */
export function replayFlow(deps: ReplayFlowDependencies): Flow {
  const parts: ReplayPageDependencies = {
    ...deps,
    placementsFor: (into, event) => placementsIn(into, event, deps.routes()),
    atReplayRate: ({ id, rate, per }, cost, call) =>
      createLimit(REPLAY_FLOW, { rate, per }, deps.limits).per(id).run(call, { cost }),
  }
  return {
    ...createFlow<Run>(REPLAY_FLOW, { on: isReplayStep, key: replayIdOf, run: (one) => runReplayPage(parts, one) }),
    isInternal: true,
  }
}

function isReplayStep(event: FlowEvent): boolean {
  return event.source === REPLAY_FLOW
}

function replayIdOf(event: FlowEvent): string | undefined {
  return event.subject
}

/** The dedupe id turns a step that is published twice into one step. */
export function createReplayStep({ id, started, step }: ReplayRecord): EventInput {
  return { type: 'step', source: REPLAY_FLOW, subject: id, dedupeId: `${id}/${started}/${step}`, data: { step } }
}
