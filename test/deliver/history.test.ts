// Tests the stored history of an endpoint's POSTs, and the health that is computed from it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CLOSED, type Breaker } from '../../src/deliver/health/breaker.ts'
import { computeHealth } from '../../src/deliver/health/health.ts'
import {
  cleanText,
  mergeHistories,
  NO_HISTORY,
  addNotes,
  listLastDay,
  sumLastDay,
  type PostHistory,
  type PostNote,
} from '../../src/deliver/health/history.ts'

const HOUR = 3_600_000
const NOON = Date.UTC(2026, 0, 1, 12)

function post(more: Partial<PostNote> = {}): PostNote {
  const usual = { run: 'r', attempt: 1, at: NOON, ms: 20, status: 200, answer: 'ok', error: '' } as const
  return { ...usual, latency: 1_000, isLast: false, ...more }
}

function historyOf(...posts: readonly Partial<PostNote>[]): PostHistory {
  return addNotes(NO_HISTORY, posts.map(post))
}

const failed = (more: Partial<PostNote> = {}): Partial<PostNote> => ({
  status: 500,
  error: 'The endpoint returned 500.',
  ...more,
})

function dead(n: number): PostHistory {
  return historyOf(...Array.from({ length: n }, () => failed({ isLast: true })))
}

describe('a history', () => {
  test('notes add up in any order', () => {
    const notes = fc.record({
      at: fc.integer({ min: NOON, max: NOON + 23 * HOUR }),
      ms: fc.integer({ min: 0, max: 30_000 }),
      error: fc.constantFrom('', 'The endpoint returned 500.'),
    })
    fc.assert(
      fc.property(fc.uniqueArray(notes, { selector: ({ at }) => at, maxLength: 40 }), fc.nat(40), (some, cut) => {
        const all = some.toSorted((one, other) => one.at - other.at)
        const [one, other] = [historyOf(...all.slice(0, cut)), historyOf(...all.slice(cut))]
        expect(mergeHistories(one, other)).toEqual(historyOf(...all))
        expect(mergeHistories(other, one)).toEqual(historyOf(...all))
      }),
    )
  })

  test('a purge removes the ids of the events of its runs, and of no other', () => {
    const named = historyOf(
      { run: 'purged', first: 'a', last: 'b', answer: '' },
      { run: 'other', first: 'c', last: 'd' },
    )
    const [purged, other] = mergeHistories(named, { ...NO_HISTORY, purged: ['purged'] }).attempts
    expect(purged).toMatchObject({ run: 'purged' })
    expect(Object.keys(purged ?? {})).not.toEqual(expect.arrayContaining([expect.stringMatching(/first|last/)]))
    expect(other).toMatchObject({ run: 'other', first: 'c', last: 'd' })
  })

  test('a history has a bounded size', () => {
    const flood = '\u0000"\\\uD800é'.repeat(10_000)
    let history = NO_HISTORY
    for (let n = 0; n < 2_000; n++) {
      history = addNotes(history, [post({ at: NOON + n * HOUR, answer: flood, error: flood, run: `r${n}` })])
    }
    expect(history.steps).toHaveLength(48)
    expect(history.attempts).toHaveLength(50)
    expect(history.attempts.at(-1)?.run).toBe('r1999')
    expect(JSON.stringify(history).length).toBeLessThan(300_000)
    expect(cleanText('a\u001b[31mb')).toBe('a [31mb')
  })

  test("Sluice's own failure counts nowhere, displaces nothing, and is listed once per run", () => {
    const ours = (n: number): Partial<PostNote> => failed({ run: 'stuck', at: NOON + n, isOurs: true })
    const before = historyOf(failed({ run: 'other', at: NOON - 1, isOurs: true }), failed())
    const all = [...Array(200).keys()].reduce((history, n) => mergeHistories(history, historyOf(ours(n))), before)
    expect(all.attempts.map(({ run, at }) => [run, at - NOON])).toEqual([
      ['other', -1],
      ['r', 0],
      ['stuck', 199],
    ])
    expect(sumLastDay(all, NOON)).toEqual(sumLastDay(historyOf(failed()), NOON))
  })

  test('a history counts one day', () => {
    const history = historyOf(failed({ isLast: true, latency: 9_999 }), { at: NOON + HOUR, ms: 40, latency: 3_000 })
    expect(sumLastDay(history, NOON + HOUR)).toMatchObject({ delivered: 1, failed: 1, dead: 1, ms: 60, latency: 3_000 })
    expect(sumLastDay(history, NOON + 24 * HOUR)).toMatchObject({ delivered: 1, failed: 0, dead: 0 })
    expect(sumLastDay(history, NOON + 25 * HOUR)).toMatchObject({ delivered: 0, failed: 0 })
    expect(history.lastSuccess).toBe(NOON + HOUR)
  })

  test('a day has 48 half hours, the current one last', () => {
    const history = historyOf(failed(), { at: NOON + HOUR }, { at: NOON + HOUR + 1 })
    const day = listLastDay(history, NOON + HOUR + 60_000)
    expect(day).toHaveLength(48)
    expect(day.slice(-4)).toEqual([
      { at: NOON - HOUR / 2, delivered: 0, failed: 0 },
      { at: NOON, delivered: 0, failed: 1 },
      { at: NOON + HOUR / 2, delivered: 0, failed: 0 },
      { at: NOON + HOUR, delivered: 2, failed: 0 },
    ])
    expect(listLastDay(history, NOON + 24.5 * HOUR)[0]).toMatchObject({ delivered: 2 })
  })
})

describe('health', () => {
  const of = (breaker: Breaker, history: PostHistory = NO_HISTORY, stuck = 0): ReturnType<typeof computeHealth> =>
    computeHealth({ breaker, history, stuck, now: NOON })
  const failing = { failures: 5, since: NOON - HOUR } as const

  test('the stats cover all attempts of the day', () => {
    const history = historyOf(
      { latency: 1_000, ms: 10 },
      { latency: 2_000, ms: 20 },
      failed({ ms: 60 }),
      failed({ ms: 30 }),
    )
    expect(of(CLOSED, history)).toEqual({
      status: 'up',
      why: '',
      breaker: 'closed',
      consecutiveFailures: 0,
      attempts: 4,
      successRate: 0.5,
      latencyMs: 1_500,
      responseMs: 30,
      failedBatches: 0,
      stuckBatches: 0,
    })
    expect(of(CLOSED)).not.toHaveProperty('successRate')
  })

  test.each([
    ['up', CLOSED],
    ['degraded', { kind: 'closed', failures: 1, since: NOON }],
    ['down', { kind: 'open', ...failing, until: NOON }],
    ['down', { kind: 'half-open', ...failing, until: NOON, probe: 'r' }],
    ['down', { kind: 'disabled', ...failing, why: 'gone', at: NOON }],
    ['down', { kind: 'disabled', ...failing, why: 'failing', at: NOON }],
  ] as const)('is %s by %o', (status, breaker) => {
    const health = of(breaker)
    expect([health.status, health.why === '']).toEqual([status, status === 'up'])
    expect(health.consecutiveFailures).toBe(breaker.failures)
  })

  test("an endpoint is degraded during Sluice's own failure, until a batch gets through", () => {
    const ours = historyOf(failed({ isOurs: true }))
    expect(of(CLOSED, ours)).toMatchObject({ status: 'degraded', why: 'The endpoint returned 500.', attempts: 0 })
    expect(of(CLOSED, mergeHistories(ours, historyOf({ at: NOON + 1 })))).toMatchObject({ status: 'up', attempts: 1 })
  })

  test('more than 100 dead batches make an endpoint degraded; one stuck batch makes it down', () => {
    expect(of(CLOSED, dead(100))).toMatchObject({ status: 'up', failedBatches: 100 })
    expect(of(CLOSED, dead(101))).toMatchObject({ status: 'degraded', failedBatches: 101 })
    expect(of(CLOSED, NO_HISTORY, 1)).toMatchObject({ status: 'down', stuckBatches: 1 })
  })
})
