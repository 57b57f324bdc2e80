// Tests the verdict over an app: idle, keeping up, falling behind, or stalled and why.
import { expect, test } from 'vitest'
import { judge, type VerdictFacts } from '../../src/observe/status/verdict.ts'

const NOW = Date.UTC(2026, 0, 1)
const MINUTE = 60_000
const flow = { name: 'bill', paused: undefined, isServed: true, isFull: false }
const late: VerdictFacts = {
  now: NOW,
  inLine: 40,
  oldestDue: NOW - 3 * MINUTE,
  lastRunBegan: NOW - 1_000,
  lastEvent: NOW,
  lateness: [0, MINUTE, 2 * MINUTE, 2.5 * MINUTE],
  flow,
}

test('lanes that wait less than 5 s are no backlog, even if the delay grows', () => {
  expect(judge({ ...late, oldestDue: NOW - 4_999, lateness: [0, 1_000, 2_000, 4_000] }).verdict).toBe('keeping-up')
})

test('an app whose delay grew in each of the last two minutes falls behind, and says how late it will be', () => {
  expect(judge(late)).toEqual({
    verdict: 'falling-behind',
    sentence:
      'Falling behind: 40 lanes are in line, the oldest for 3 minutes; at this pace it will be about 33 minutes in 30 minutes.',
  })
})

test('a delay that does not grow is named, but the app keeps up', () => {
  expect(judge({ ...late, inLine: 1, lateness: [MINUTE, 4 * MINUTE, 3 * MINUTE, MINUTE] })).toEqual({
    verdict: 'keeping-up',
    sentence: 'Keeping up: 1 lane is in line, for 3 minutes, and the delay does not grow.',
  })
})

test('a backlog of seconds after a quiet time is not yet falling behind', () => {
  expect(judge({ ...late, oldestDue: NOW - 10_000, lateness: [0, 0, 0, 0] }).verdict).toBe('keeping-up')
})

test.each([
  ['paused', { ...flow, paused: { by: 'ada', reason: 'a bad deploy' } }, 'was paused by "ada": "a bad deploy".'],
  ['unserved', { ...flow, isServed: false }, 'No process serves the flow "bill".'],
  ['no-slots', { ...flow, isFull: true }, 'All runs that the flow "bill" may have at once are in progress.'],
  ['unknown', flow, 'Look at the log'],
] as const)('an app where no run began for a minute is stalled: %s', (reason, of, text) => {
  const verdict = judge({ ...late, lastRunBegan: NOW - MINUTE, flow: of })
  expect(verdict).toMatchObject({ verdict: 'stalled', reason })
  expect(verdict.sentence).toContain('40 lanes are in line and no run has begun for 1 minute')
  expect(verdict.sentence).toContain(text)
  expect(judge({ ...late, lastRunBegan: NOW - MINUTE + 1, flow: of }).verdict).not.toBe('stalled')
})

test('a lane that has just become due does not stall an app whose last run was long ago', () => {
  expect(judge({ ...late, oldestDue: NOW - 1_000, lastRunBegan: NOW - 60 * MINUTE }).verdict).toBe('keeping-up')
})

test('names of flows and reasons are quoted, so that they cannot forge the sentence', () => {
  const paused = { by: 'ada\u202e', reason: '"fine"\n' }
  const { sentence } = judge({ ...late, lastRunBegan: undefined, flow: { ...flow, paused } })
  expect(sentence).toContain(String.raw`"ada\u202e": "\"fine\"\n"`)
})
