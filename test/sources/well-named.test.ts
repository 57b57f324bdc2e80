// A sender with the secret may still send garbage: a source either rejects a body or gives its events valid names.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createEvent } from '../../src/model/new-event.ts'
import type { SourceEvent } from '../../src/receive/source.ts'
import { cases as cloudEvents } from './cases/cloud-events.ts'
import { cases as garmin } from './cases/garmin.ts'
import { cases as notionAction } from './cases/notion-action.ts'
import { cases as notion } from './cases/notion.ts'
import { cases as strava } from './cases/strava.ts'
import { cases as whatsapp } from './cases/whatsapp.ts'
import { NOW } from './faults.ts'
import { mutations } from './mutations.ts'

const CASES = [...whatsapp, ...notion, ...notionAction, ...strava, ...garmin, ...cloudEvents]
/** Replaces a value in the body but keeps the shape, so that more code is reached than with random bytes. */
const INSTEAD = ['null', '""', '"\\ud800"', '1e400', '-0', '[]', '{}', '[[]]', '"__proto__"', `"${'x'.repeat(2_000)}"`]

describe.each(CASES)('$name', (one) => {
  const source = one.build(one.secret)
  const genuine = one.request(one.secret, NOW)

  test('random bytes are rejected or named validly', () => {
    fc.assert(
      fc.property(mutations(genuine), (request) => {
        const events = source.events(request)
        if (!('code' in events)) isTaken(events)
      }),
      { numRuns: 2_000 },
    )
  })

  test('random values are rejected or named validly', () => {
    const text = Buffer.from(genuine.body).toString()
    const values = [...text.matchAll(/(?<=[:[,])(?:"[^"]*"|\d+)(?=[,}\]])/g)]
    const change = fc.tuple(fc.nat(values.length - 1), fc.oneof(fc.constantFrom(...INSTEAD), fc.json()))
    fc.assert(
      fc.property(change, ([n, instead]) => {
        const at = values[n]?.index ?? 0
        const body = Buffer.from(text.slice(0, at) + instead + text.slice(at + (values[n]?.[0].length ?? 0)))
        const events = source.events({ ...genuine, body })
        if (!('code' in events)) isTaken(events)
      }),
      { numRuns: 2_000 },
    )
  })
})

function isTaken(events: readonly SourceEvent[]): void {
  for (const { dedupeId, ...event } of events) {
    const input = { ...event, source: 'test', ...(dedupeId !== undefined && { dedupeId }) }
    expect(() => createEvent(input, { now: NOW, dedupeFor: 1 })).not.toThrow()
  }
}
