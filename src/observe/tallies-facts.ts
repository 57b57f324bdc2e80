// What figures need of a run and listeners are not told: when its events came and of what kind they are. It lies beside what
// is emitted while that is emitted, so that neither the log nor anybody else's listener gets more than it asked for.
import type { Outcome } from '../model/settle.ts'
import type { ClaimedEvent, Lease } from '../store/contract/index.ts'
import type { AnyListener, EventMap, EventName } from './events.ts'

export interface RunFacts {
  readonly lease: Pick<Lease, 'lane' | 'flow' | 'tries' | 'lapses' | 'rank' | 'letter'> & {
    readonly events: readonly Pick<ClaimedEvent, 'id' | 'source' | 'type' | 'arrived'>[]
  }
  /** Undefined: it has only begun. */
  readonly outcome: Outcome | undefined
}

/** A map of what is weakly held would cost more than all the counting. */
let emitted: { readonly what: object; readonly facts: RunFacts } | undefined

export function emitWithFacts<N extends EventName>(
  emit: AnyListener,
  name: N,
  what: EventMap[N],
  facts: RunFacts,
): void {
  const before = emitted
  emitted = { what, facts }
  emit(name, what)
  emitted = before
}

/** Only while it is being emitted. */
export function factsOf(what: object): RunFacts | undefined {
  return emitted?.what === what ? emitted.facts : undefined
}

export type EventEnd = 'done' | 'dropped' | 'dead' | 'failing'
/** What the events of a run were counted as before it. */
export type EventBefore = Extract<EventEnd, 'dead' | 'failing'> | undefined

export function beforeOf({ lease: { tries, letter } }: RunFacts): EventBefore {
  return tries > 0 ? 'failing' : letter ? 'dead' : undefined
}

/** How each event of the run ended, or that it is tried again; undefined of those that merely wait on. */
export function endOf({ outcome }: RunFacts): (event: string) => EventEnd | undefined {
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
    case 'again':
    case 'released':
    case 'cancelled':
    case undefined:
      return () => undefined
  }
}
