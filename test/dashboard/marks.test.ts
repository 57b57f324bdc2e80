// The pure parts of the dashboard: the marks and words of a lane, JSON with changed lines, and the copies of an event.
import { expect, it } from 'vitest'
import { fixtureOf, quoted } from '../../dashboard/src/pages/events/copies.ts'
import { linesOf } from '../../dashboard/src/lib/json-lines.ts'
import { marksOf, withNews, type Mark } from '../../dashboard/src/lib/lane-marks.ts'
import { lastMinute } from '../../dashboard/src/lib/rates.ts'
import { niceTicks } from '../../dashboard/src/lib/ticks.ts'
import { sentenceOf, textOf } from '../../dashboard/src/lib/lane-sentence.ts'
import { labelsOf, nextOf } from '../../dashboard/src/lib/lane-words.ts'
import type { EventDetail, Lane, LaneRun, StatsPoint } from '../../dashboard/src/lib/types.ts'

const NOW = 1_000_000

const LANE: Lane = {
  id: 'lane',
  flow: 'rank-user',
  key: 'ada',
  tenant: '',
  state: 'waiting',
  due: NOW + 4_200,
  cap: NOW + 38_000,
  waiting: 2,
  bytes: 10,
  blocks: 0,
  arrivals: [
    { at: NOW - 20_000, inRun: false },
    { at: NOW - 6_000, inRun: false },
  ],
}
const RUN: LaneRun = {
  id: 'run',
  state: 'running',
  started: NOW - 6_800,
  until: NOW + 23_000,
  events: 3,
  bytes: 10,
  tries: 0,
  lapses: 0,
  cancel: false,
  attempts: [],
}

const named = (marks: readonly Mark[], name: string): readonly Mark[] =>
  marks.filter((mark) => mark.is !== 'gate' && mark.class === name)
const gates = (marks: readonly Mark[]): readonly Mark[] => marks.filter(({ is }) => is === 'gate')

it('raises the water by one step for each event, with a drop on each step', () => {
  const { past } = marksOf(LANE)
  const water = named(past, 'water')
  expect(water).toMatchObject([
    { from: NOW - 20_000, to: NOW - 6_000 },
    { from: NOW - 6_000, to: NOW + 4_200 },
  ])
  const heights = water.map((mark) => (mark.is === 'bar' ? mark.height : 0))
  expect(heights[1]).toBeGreaterThan(heights[0] ?? 0)
  expect(named(past, 'drop')).toHaveLength(2)
})

it('hatches what more events may push the gate over, up to the cap', () => {
  const { ahead } = marksOf(LANE)
  expect(named(ahead, 'slide')).toMatchObject([{ from: NOW + 4_200, to: NOW + 38_000 }])
  expect(gates(ahead)).toMatchObject([{ at: NOW + 38_000, post: true }, { at: NOW + 4_200 }])
  const atCap = { ...LANE, cap: NOW + 4_200 }
  expect(named(marksOf(atCap).ahead, 'slide')).toEqual([])
})

it('shows lateness as a length from the deadline on, without being drawn again', () => {
  // The same marks are right before and after the gate meets the now line, because the past is clipped there.
  expect(named(marksOf(LANE).past, 'late-marks')).toMatchObject([{ from: NOW + 4_200, to: Infinity }])
})

it('puts a run above the events that arrive meanwhile, and its lease right of now', () => {
  const { past, ahead } = marksOf({ ...LANE, state: 'running', run: RUN })
  const [running] = named(past, 'running')
  const [alone] = named(marksOf({ ...LANE, state: 'running', waiting: 0, run: RUN }).past, 'running')
  expect(running).toMatchObject({ from: RUN.started, y: 8 })
  expect(running?.is === 'bar' && alone?.is === 'bar' && running.height < alone.height).toBe(true)
  expect(named(ahead, 'lease')).toMatchObject([{ from: RUN.started, to: RUN.until }])
})

it('draws failed attempts as bars, and dots to the next gate', () => {
  const attempts = [{ at: NOW - 9_000, ms: 800, error: 'HTTP 502' }]
  const run: LaneRun = { ...RUN, state: 'retrying', tries: 1, attempts, until: NOW + 27_000 }
  const { past, ahead } = marksOf({ ...LANE, state: 'retrying', run })
  expect(named(past, 'failed')).toMatchObject([{ from: NOW - 9_800, to: NOW - 9_000 }])
  expect(named(ahead, 'backoff')).toMatchObject([{ from: NOW - 9_000, to: NOW + 27_000 }])
  expect(gates(ahead)).toContainEqual({ is: 'gate', tone: 'fail', at: NOW + 27_000 })
})

it('stripes the wait for a limit up to its slot', () => {
  const run: LaneRun = { ...RUN, state: 'snoozed', until: NOW + 3_600 }
  const lane: Lane = { ...LANE, state: 'snoozed', deferredBy: 'per-sender', waiting: 0, run }
  expect(named(marksOf(lane).ahead, 'limited-marks')).toMatchObject([{ to: NOW + 3_600 }])
  expect(nextOf(lane, NOW)).toEqual({ text: 'Slot in 3.6 s', detail: 'deferred by per-sender' })
})

it.each<[string, Partial<Lane>, string]>([
  ['a window', {}, 'Waits for its window with 2 events: due in 4.2 s, at the latest in 38 s if more events arrive.'],
  [
    'a window at its cap',
    { cap: NOW + 4_200 },
    'Waits for its window with 2 events: due in 4.2 s, whatever else arrives.',
  ],
  [
    'a permit',
    { state: 'ready', due: NOW - 9_400, rank: 1 },
    'Has been due for 9.4 s with 2 events, 1st in line; all 4 permits of the flow are taken.',
  ],
  [
    'a person',
    { state: 'held', hold: { by: 'ada', reason: 'freeze' } },
    'Is held by ada (“freeze”) until somebody ends the hold, with 2 events.',
  ],
  [
    'a dead letter',
    { state: 'blocked', blocks: 1 },
    'Is blocked by 1 dead letter. 2 events wait until it is retried or dropped.',
  ],
])('says that a lane waits for %s', (_, change, sentence) => {
  const flow = { flow: 'rank-user', waiting: 1, ready: 1, running: 4, events: 1, concurrency: 4 }
  expect(textOf(sentenceOf({ ...LANE, ...change }, NOW, flow))).toBe(sentence)
})

it('writes the next gate beside it, and counts down', () => {
  expect(labelsOf(LANE, NOW)).toMatchObject({ beside: { text: '4.2 s' }, latest: { text: 'latest 38 s' } })
  expect(labelsOf(LANE, NOW + 1_000)).toMatchObject({ beside: { text: '3.2 s' } })
})

it('marks changed, new and removed lines of JSON, and nothing below a new line', () => {
  const before = { a: 1, b: { x: 'old', y: 1 }, gone: true, list: [1, 2] }
  const after = { a: 1, b: { x: 'new', y: 1 }, fresh: { deep: [1] }, list: [1, 3] }
  const lines = linesOf(after, before)
  expect(lines.filter(({ was }) => was !== undefined).map(({ key, text, was }) => [key, text, was])).toEqual([
    [undefined, '{', 'without "gone"'],
    ['x', '"new"', 'was "old"'],
    ['fresh', '{', 'new'],
    [undefined, '3', 'was 2'],
  ])
  expect(linesOf(after).some(({ was }) => was !== undefined)).toBe(false)
})

it('quotes any text as one word of a shell', () => {
  expect(quoted(`it's $HOME`)).toBe(`'it'\\''s $HOME'`)
})

it('writes an event as a call of the test kit', () => {
  const event = {
    id: 'evt_1',
    source: 'stripe',
    type: 'invoice.paid',
    time: 5,
    tenant: '',
    subject: 'cus_1',
    body: { kind: 'text', text: '{"amount":1}' },
  } as unknown as EventDetail
  expect(fixtureOf(event)).toBe(
    'await t.send({\n  id: "evt_1",\n  source: "stripe",\n  type: "invoice.paid",\n  time: 5,\n  subject: "cus_1",\n  data: {\n    "amount": 1\n  },\n})\n',
  )
})

const fresh = (before: Lane, lane: Lane): readonly Mark[] =>
  named(withNews(marksOf(lane).past, before, lane), 'drop fresh')

it('lets only the events drop in that joined since the last answer, and the gate open once', () => {
  const arrivals = [...(LANE.arrivals ?? []), { at: NOW - 500, inRun: false }]
  const next: Lane = { ...LANE, waiting: 3, arrivals }
  expect(fresh(LANE, next)).toEqual([expect.objectContaining({ at: NOW - 500 })])
  expect(fresh(next, next)).toEqual([])
  const { due: _, ...rest } = LANE
  const running: Lane = { ...rest, state: 'running', run: RUN }
  const opening = (before: Lane): number =>
    withNews(marksOf(running).past, before, running).filter((mark) => mark.is === 'gate' && mark.tone === 'opening')
      .length
  expect([opening(LANE), opening(running)]).toEqual([1, 0])
})

it('gives an axis of whole numbers no fractions, which would all read 0', () => {
  expect(niceTicks(1, 1).values).toEqual([1, 2])
  expect(niceTicks(0.5).values).toEqual([0.2, 0.4])
  expect(niceTicks(240, 1).values).toEqual([100, 200])
})

const point = (received: number): StatsPoint => ({ at: 0, received, done: 0, dead: 0, failing: 0 })

it('gives the rate of the last whole minute, and within the first minute what it has so far', () => {
  expect(lastMinute([point(0), point(7), point(3)])).toEqual({ received: 7, done: 0, isPartial: false })
  expect(lastMinute([point(0), point(0), point(3)])).toEqual({ received: 3, done: 0, isPartial: true })
  expect(lastMinute([point(5), point(0), point(3)])).toEqual({ received: 0, done: 0, isPartial: false })
  expect(lastMinute()).toEqual({ received: 0, done: 0, isPartial: false })
})
