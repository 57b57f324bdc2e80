// The sentence of explain from facts that no store may ever have: rare combinations, and texts chosen by strangers.
import { describe, expect, it } from 'vitest'
import type { ExplanationFacts } from '../../src/observe/explain/facts.ts'
import { toLaneRecordFacts } from '../../src/observe/explain/lane-facts.ts'
import { buildSentence } from '../../src/observe/explain/sentence.ts'

const NOW = 1_000_000

function factsOf(words: Partial<ExplanationFacts>): ExplanationFacts {
  return {
    ...toLaneRecordFacts(undefined, undefined, NOW),
    flow: 'f',
    key: 'k',
    state: words.laneState ?? 'empty',
    full: false,
    processFull: false,
    lingers: false,
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
    [{ concurrency: undefined }, 'all permits of the flow are taken'],
    [{ concurrency: 1 }, 'the one permit of the flow is taken'],
    [{ concurrency: 2, group: 'g' }, 'all 2 permits that a group may have of the flow are taken'],
  ])('%o', (words, text) => {
    expect(buildSentence(factsOf({ ...READY, full: true, ...words }))).toContain(`; ${text}.`)
  })

  it('are not mentioned if no lane waits for one, or no process serves the flow', () => {
    expect(buildSentence(factsOf({ full: true }))).not.toContain('slot')
    expect(buildSentence(factsOf({ ...READY, full: true, served: false }))).toMatch(/; no process serves this flow\.$/)
  })
})

it('an unserved flow is mentioned in every state but running', () => {
  const states = ['empty', 'idle', 'waiting', 'ready', 'lapsed', 'retrying', 'snoozed', 'blocked', 'held'] as const
  for (const laneState of states)
    expect(buildSentence(factsOf({ laneState, served: false }))).toMatch(/; no process serves this flow\.$/)
  expect(buildSentence(factsOf({ laneState: 'running', served: false }))).not.toContain('serves')
})

it('a lapsed run is not announced to return at once if something prevents it', () => {
  const lapsed: Partial<ExplanationFacts> = {
    ...READY,
    laneState: 'lapsed',
    waiting: 0,
    lapses: 1,
    run: 'r',
    events: 2,
  }
  expect(buildSentence(factsOf(lapsed))).toContain('it comes back at once with its 2 events.')
  for (const obstacle of [{ served: false }, { pausedBy: 'ada' }, { full: true }, { ahead: 3, position: 4 }])
    expect(buildSentence(factsOf({ ...lapsed, ...obstacle }))).toContain('with its 2 events when it gets its turn')
})

it('a run that was purged, a replay, and a dead letter that runs', () => {
  const running: Partial<ExplanationFacts> = { laneState: 'running', run: 'r', started: NOW, attempt: 1, events: 0 }
  expect(buildSentence(factsOf({ ...running, purged: true, kind: 'replay' }))).toBe(
    'Lane "k" of flow "f" is running: replay run "r" began now, is at attempt 1 with 0 events, has lost its events to a purge, and its lease has no end.',
  )
  expect(buildSentence(factsOf({ ...running, kind: 'dead-letter' }))).toContain('run of dead letter "r" began now')
})

it('more dead letters than were counted', () => {
  expect(buildSentence(factsOf({ dead: 100, deadExact: false }))).toContain(
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
    queuedDeadLetter: hostile,
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
    'snoozed',
    'blocked',
    'held',
  ] as const
  for (const laneState of states) {
    const text = buildSentence(factsOf({ ...READY, ...everything, laneState, behindHold: 'blocked' }))
    expect(text).toMatch(/^Lane "[\u0020-\u007e…]*\.$/)
    expect(text.length).toBeLessThan(2_000)
    // Everything outside the quotes is Sluice's own text.
    expect(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(/[xz]{2}|done\.|\\/)
  }
})
