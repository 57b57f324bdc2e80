// Checks the names of emitted events, because a listener of a misspelled name would never be called.
import { suggestName } from '../validate/closest-name.ts'
import { invalidOption } from '../validate/options.ts'
import type { EventName } from './emitter.ts'
import { EVENT_LOG_LEVELS } from './log/levels.ts'

/** `assertEventName` throws if the app emits no event of this name. */
export function assertEventName(name: EventName): void {
  if (Object.hasOwn(EVENT_LOG_LEVELS, name)) return
  const guess = suggestName(name, Object.keys(EVENT_LOG_LEVELS))
  throw invalidOption(`the name of an event must be one that the app emits; got ${JSON.stringify(name)}.${guess}`)
}
