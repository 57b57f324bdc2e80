// Facts about a run that the stats need but listeners do not get, e.g. the arrival times of its events. They are
// attached only while the event is emitted, so logs and users' listeners receive nothing extra.
import type { RunOutcome } from '../../model/settle.ts'
import type { ClaimedEvent, LeasedRun } from '../../store/contract/index.ts'
import type { AnyListener, EventMap, EventName } from '../emitter.ts'

export interface RunFacts {
  readonly lease: Pick<LeasedRun, 'lane' | 'flow' | 'tries' | 'lapses' | 'rank' | 'isDeadLetter'> & {
    readonly events: readonly Pick<ClaimedEvent, 'id' | 'source' | 'type' | 'arrived'>[]
  }
  /** Undefined if the run has only started. */
  readonly outcome: RunOutcome | undefined
}

/** A WeakMap here would cost more than all the counting. */
let currentEmission: { readonly what: object; readonly facts: RunFacts } | undefined

export function emitWithFacts<N extends EventName>(
  emit: AnyListener,
  name: N,
  payload: EventMap[N],
  facts: RunFacts,
): void {
  const before = currentEmission
  currentEmission = { what: payload, facts }
  emit(name, payload)
  currentEmission = before
}

/** `emittedFacts` returns the facts only while the event is being emitted. */
export function emittedFacts(payload: object): RunFacts | undefined {
  return currentEmission?.what === payload ? currentEmission.facts : undefined
}

export type EventEnd = 'done' | 'dropped' | 'dead' | 'failing'
/** `PreviousEventEnd` is how the events of a run were counted before it. */
export type PreviousEventEnd = Extract<EventEnd, 'dead' | 'failing'> | undefined

export function previousEventEnd({ lease: { tries, isDeadLetter } }: RunFacts): PreviousEventEnd {
  return tries > 0 ? 'failing' : isDeadLetter ? 'dead' : undefined
}

/** `eventEnds` returns how each event ended or that it is retried; undefined for events that only wait on. */
export function eventEnds({ outcome }: RunFacts): (event: string) => EventEnd | undefined {
  switch (outcome?.kind) {
    case 'done':
    case 'dropped':
    case 'dead': {
      const { kind } = outcome
      return () => kind
    }
    case 'retry':
      return () => 'failing'
    case 'partial': {
      const dead = new Set(outcome.dead)
      const retry = new Set(outcome.retry)
      return (event) => (dead.has(event) ? 'dead' : retry.has(event) ? 'failing' : 'done')
    }
    case 'snoozed':
    case 'released':
    case 'cancelled':
    case undefined:
      return () => undefined
  }
}
