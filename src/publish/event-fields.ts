// Checks the names of the fields that a caller gives an event.
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event.ts'
import { suggestName } from '../validate/closest-name.ts'

const FIELDS: readonly string[] = [
  'type',
  'data',
  'body',
  'source',
  'tenant',
  'subject',
  'time',
  'attributes',
  'id',
  'dedupeId',
] satisfies (keyof EventInput)[]

/** `assertKnownFields` rejects a misspelled field of a published event, which would be missing without a word. */
export function assertKnownFields(input: EventInput): void {
  if (typeof input !== 'object' || input === null) return
  for (const name of Object.keys(input)) {
    if (FIELDS.includes(name)) continue
    const guess = suggestName(name, FIELDS)
    throw new SluiceError(
      'EVENT_INVALID',
      `${JSON.stringify(name.slice(0, 100))} is not a field of an event; nothing was stored.${guess}`,
    )
  }
}
