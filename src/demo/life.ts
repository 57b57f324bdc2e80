// What happens to lanes, as the demo sees it happen, and the words for it. Times are the store's.
import type { Millis } from '../index.ts'
import { RETRY } from './flow.ts'

export interface SeenEvent {
  readonly id: string
  readonly arrived: Millis
}

interface Happened {
  readonly at: Millis
  readonly user: string
}

interface WithEvents extends Happened {
  readonly events: readonly SeenEvent[]
}

interface Ended extends WithEvents {
  readonly calls: number
  readonly ms: Millis
}

export type Life =
  | (Happened & {
      readonly kind: 'received'
      readonly id: string
      readonly waiting: number
      readonly dueIn: Millis
      readonly running: boolean
    })
  | (Happened & { readonly kind: 'due'; readonly events: number; readonly position: number })
  | (WithEvents & { readonly kind: 'claimed'; readonly due: Millis; readonly attempt: number })
  /** A call was handed to the API; `handed` is on the monotonic clock. */
  | (Happened & { readonly kind: 'called'; readonly handed: Millis; readonly call: number; readonly of: number })
  | (Ended & { readonly kind: 'done' })
  | (Ended & { readonly kind: 'retry'; readonly attempt: number; readonly error: string; readonly after: Millis })
  | (Ended & { readonly kind: 'dead'; readonly attempt: number; readonly error: string })
  /** Given back, because the demo stops. */
  | (Ended & { readonly kind: 'released' })
  /** The lease was lost: the run is somebody else's now. */
  | (WithEvents & { readonly kind: 'lost' })

export type Tell = (life: Life) => void

export function seconds(ms: Millis): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

export function many(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`
}

/** One line about it, without time and name. */
export function wordsFor(life: Life): string {
  switch (life.kind) {
    case 'received':
      return life.running
        ? `during its run: ${many(life.waiting, 'event')} to go to the tail after it`
        : `${many(life.waiting, 'event')} waiting as one, due in ${seconds(life.dueIn)}`
    case 'due':
      return `${many(life.events, 'event')}, place ${life.position} in line`
    case 'claimed':
      return `${many(life.events.length, 'event')}, ${seconds(life.at - life.due)} in line, try ${tryOf(life.attempt)}`
    case 'called':
      return `call ${life.call} of ${life.of}`
    case 'done':
      return `${many(life.events.length, 'event')}, ${many(life.calls, 'call')}, ${seconds(life.ms)}`
    case 'retry':
      return `${life.error}; failed try ${tryOf(life.attempt)}, again in ${life.after} ms`
    case 'dead':
      return `${life.error}; dead letter of ${many(life.events.length, 'event')}, ${life.attempt} tries`
    case 'released':
      return `${many(life.events.length, 'event')} given back, ready for the next process`
    case 'lost':
      return 'lease lost: what it did does not count'
  }
}

function tryOf(attempt: number): string {
  return `${attempt} of ${RETRY.tries}`
}
