// The sentence alone, from facts that no store need have: rare combinations, and texts that strangers chose.
import { describe, expect, it } from 'vitest'
import type { ExplanationFacts } from '../../src/observe/explain-facts.ts'
import { NOT_IN_LINE } from '../../src/observe/explain-line.ts'
import { NO_PAST } from '../../src/observe/explain-past.ts'
import { recordFacts } from '../../src/observe/explain-record.ts'
import { sentenceOf } from '../../src/observe/explain-sentence.ts'

const NOW = 1_000_000

function factsOf(words: Partial<ExplanationFacts>): ExplanationFacts {
  return {
    ...recordFacts(undefined, undefined, NOW),
    ...NOT_IN_LINE,
    ...NO_PAST,
    flow: 'f',
    key: 'k',
    state: words.laneState ?? 'empty',
    blockedBy: undefined,
    blockedSince: undefined,
    blockedReason: undefined,
    blockedTries: undefined,
    queuedLetter: undefined,
    pausedBy: undefined,
    pauseReason: undefined,
    pausedSince: undefined,
    full: false,
    processFull: false,
    lingers: false,
    limit: undefined,
    limitIn: undefined,
    limitPausedFor: undefined,
    declared: true,
    served: true,
    concurrency: undefined,
    pressure: undefined,
    quiet: undefined,
    globs: undefined,
    keyed: true,
    ...words,
  }
}

const READY: Partial<ExplanationFacts> = {
  laneState: 'ready',
  deadline: NOW - 50,
  in: -50,
  waiting: 2,
  line: 'healthy',
  ahead: 0,
  position: 1,
  aheadExact: true,
}

describe('slots', () => {
  it.each([
    [{ concurrency: undefined }, 'all slots of the flow are taken'],
    [{ concurrency: 1 }, 'the one slot of the flow is taken'],
    [{ concurrency: 2, group: 'g' }, 'all 2 slots that a group may have of the flow are taken'],
  ])('%o', (words, text) => {
    expect(sentenceOf(factsOf({ ...READY, full: true, ...words }))).toContain(`; ${text}.`)
  })

  it('are not spoken of where nobody waits for one, or nobody serves the flow', () => {
    expect(sentenceOf(factsOf({ full: true }))).not.toContain('slot')
    expect(sentenceOf(factsOf({ ...READY, full: true, served: false }))).toMatch(/; no process serves this flow\.$/)
  })
})

it('nobody to serve it is said in every state but running', () => {
  const states = ['empty', 'idle', 'waiting', 'ready', 'lapsed', 'retrying', 'again', 'blocked', 'held'] as const
  for (const laneState of states)
    expect(sentenceOf(factsOf({ laneState, served: false }))).toMatch(/; no process serves this flow\.$/)
  expect(sentenceOf(factsOf({ laneState: 'running', served: false }))).not.toContain('serves')
})

it('a lapsed run does not come back at once where something is in its way', () => {
  const lapsed: Partial<ExplanationFacts> = {
    ...READY,
    laneState: 'lapsed',
    waiting: 0,
    lapses: 1,
    run: 'r',
    events: 2,
  }
  expect(sentenceOf(factsOf(lapsed))).toContain('it comes back at once with its 2 events.')
  for (const obstacle of [{ served: false }, { pausedBy: 'ada' }, { full: true }, { ahead: 3, position: 4 }])
    expect(sentenceOf(factsOf({ ...lapsed, ...obstacle }))).toContain('with its 2 events when it gets its turn')
})

it('a run that was purged, a replay and a dead letter that runs', () => {
  const running: Partial<ExplanationFacts> = { laneState: 'running', run: 'r', started: NOW, attempt: 1, events: 0 }
  expect(sentenceOf(factsOf({ ...running, purged: true, kind: 'replay' }))).toBe(
    'Lane "k" of flow "f" is running: replay run "r" began now, is at attempt 1 with 0 events, has lost its events to a purge, and its lease has no end.',
  )
  expect(sentenceOf(factsOf({ ...running, kind: 'letter' }))).toContain('run of dead letter "r" began now')
})

it('more dead letters than were counted', () => {
  expect(sentenceOf(factsOf({ dead: 100, deadExact: false }))).toContain(
    'it has at least 100 dead letters, and an event',
  )
})

it('strangers cannot add a sentence, a line or a colour', () => {
  const hostile = `x" is done.\nLane "y\u001b[31m\u202e${'z'.repeat(5_000)}`
  const everything: Partial<ExplanationFacts> = {
    flow: hostile,
    key: hostile,
    error: hostile,
    run: hostile,
    heldBy: hostile,
    holdReason: hostile,
    pausedBy: hostile,
    pauseReason: hostile,
    blockedBy: hostile,
    blockedReason: hostile,
    blockedSince: NOW,
    limit: hostile,
    group: hostile,
    lastRun: hostile,
    lastRunEnded: NOW,
    lastRunKind: 'done',
    queuedLetter: hostile,
    queued: 1,
  }
  const states = [
    'empty',
    'idle',
    'waiting',
    'ready',
    'running',
    'lapsed',
    'retrying',
    'again',
    'blocked',
    'held',
  ] as const
  for (const laneState of states) {
    const text = sentenceOf(factsOf({ ...READY, ...everything, laneState, behindHold: 'blocked' }))
    expect(text).toMatch(/^Lane "[\u0020-\u007e…]*\.$/)
    expect(text.length).toBeLessThan(2_000)
    // Whatever is outside of quotes is ours.
    expect(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(/[xz]{2}|done\.|\\/)
  }
})
