// Fields of a lane that its row omits are restored exactly, from rows of every version: an omitted field has one meaning.
import { expect, test } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import { createLane, type Lane, type RunState } from '../../src/model/lane.ts'
import { parseRareFields, serializeRareFields } from '../../src/store/sql/lane-columns.ts'

const LANE = createLane({ id: 'l', flow: 'f', key: 'k', group: '', tenant: '' })
const FRESH: RunState =
  JSON.parse(`{ "id": "r", "parent": "", "state": "running", "token": 7, "until": 9, "rank": 0, "upto": 3,
  "isDeadLetter": false, "replay": "", "events": 2, "bytes": 5, "cap": 11, "started": 4, "tries": 0, "lapses": 0, "failed": false, "first": true,
  "cancel": false, "full": false, "committed": false, "purged": false, "failingSince": 0, "snoozedSince": 0, "state64": "", "attempts": [] }`) as RunState
const WORN: RunState =
  JSON.parse(`{ "id": "r", "parent": "p", "state": "retrying", "token": 7, "until": 9, "rank": 1, "upto": 3,
  "isDeadLetter": true, "replay": "again", "events": 2, "bytes": 5, "cap": 11, "started": 4, "tries": 2, "lapses": 3, "failed": true, "first": false,
  "cancel": true, "full": true, "committed": true, "purged": true, "failingSince": 6, "snoozedSince": 8, "state64": "c3RhdGU=", "attempts": [{ "error": "no" }] }`) as RunState
const NOTHING = {
  hasRemaining: false,
  replays: 0,
  replayDue: NEVER,
  liveClaims: 0,
  queuedDeadLetters: 0,
  deadLetterDue: NEVER,
  blocks: 0,
}
const SOME = {
  hasRemaining: true,
  replays: 1,
  replayDue: 2,
  liveClaims: 3,
  queuedDeadLetters: 4,
  deadLetterDue: 5,
  blocks: 6,
  ended: 7,
  keepUntil: 8,
}
const HOLD = { reason: 'r', by: 'b', until: 9 }

test.each<[string, Lane]>([
  ['a run that has just begun', { ...LANE, run: FRESH }],
  ['a run that nothing was spared', { ...LANE, run: WORN }],
  ['everything but a run', { ...LANE, ...SOME, hold: HOLD }],
  ['all of it', { ...LANE, ...SOME, hold: HOLD, run: WORN }],
])('%s is read as it was written', (_, lane) => {
  expect({ ...LANE, ...parseRareFields(serializeRareFields(lane) ?? '') }).toEqual(lane)
})

test('a row that omits nothing is read as it is', () => {
  expect(parseRareFields(JSON.stringify({ ...SOME, hold: HOLD, run: WORN }))).toEqual({
    ...SOME,
    hold: HOLD,
    run: WORN,
  })
})

test('omitted fields have the same meaning as always', () => {
  const least = `{"run":{"id":"r","state":"running","token":7,"until":9,"rank":0,"upto":3,"isDeadLetter":false,"events":2,"bytes":5,"cap":11,"started":4,"tries":0}}`
  expect(parseRareFields(least)).toEqual({ ...NOTHING, ended: 0, keepUntil: 0, hold: undefined, run: FRESH })
  expect(serializeRareFields({ ...LANE, run: FRESH })).toBe(least)
})
