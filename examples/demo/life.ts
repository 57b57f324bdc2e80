// What happens to lanes, as the demo sees it happen, and the words for it. Times are the store's.
import type { Millis } from 'sluice'
import { TRIES } from './flow.ts'

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
  | (WithEvents & { readonly kind: 'done'; readonly calls: number; readonly ms: Millis })
  | (WithEvents & { readonly kind: 'retry'; readonly attempt: number; readonly error: string; readonly after: Millis })
  | (WithEvents & { readonly kind: 'dead'; readonly attempt: number; readonly error: string })
  /** Given back, because the demo stops. */
  | (WithEvents & { readonly kind: 'released' })
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
      if (life.running) return `during its run: ${many(life.waiting, 'event')}, to the tail after it`
      if (life.dueIn === 0) return `joins those in line: ${many(life.waiting, 'event')} as one`
      return `${many(life.waiting, 'event')} waiting as one, due in ${seconds(life.dueIn)}`
    case 'due':
      return `${many(life.events, 'event')}, place ${life.position} in line`
    case 'claimed':
      return `${many(life.events.length, 'event')}, ${seconds(life.at - life.due)} in line, try ${tryOf(life.attempt)}`
    case 'called':
      return `call ${life.call} of ${life.of}`
    case 'done':
      return `${many(life.events.length, 'event')}, ${many(life.calls, 'call')}, ${seconds(life.ms)}`
    case 'retry':
      return `${life.error}, try ${tryOf(life.attempt)}, next in ${life.after} ms`
    case 'dead':
      return `${life.error}, ${life.attempt} tries: dead letter of ${many(life.events.length, 'event')}`
    case 'released':
      return `${many(life.events.length, 'event')} given back, ready for the next process`
    case 'lost':
      return 'lease lost: what it did does not count'
  }
}

/** The same in the width of a table's cell. */
export function briefly(life: Life): string {
  switch (life.kind) {
    case 'claimed':
      return `${many(life.events.length, 'event')} in hand`
    case 'retry':
      return `try ${life.attempt}/${TRIES}: ${life.error}`
    case 'dead':
      return `dead: ${life.error}`
    case 'released':
      return 'given back'
    case 'lost':
      return 'lease lost'
    case 'received':
    case 'due':
    case 'called':
    case 'done':
      return wordsFor(life)
  }
}

function tryOf(attempt: number): string {
  return `${attempt} of ${TRIES}`
}
