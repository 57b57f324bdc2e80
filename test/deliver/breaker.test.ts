// The breaker of an endpoint: when it opens, who may probe, how it closes, and when it is given up.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { admit, afterPost, CLOSED, type Breaker, type PostEnd } from '../../src/deliver/breaker.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Fails so often, a minute apart from `from` on; the next try would be in a minute. */
function failing(times: number, from = 0, breaker: Breaker = CLOSED): Breaker {
  let state = breaker
  for (let n = 0; n < times; n++) {
    const now = from + n * MINUTE
    state = afterPost(state, { kind: 'failed', now, next: now + MINUTE }).breaker
  }
  return state
}

test('it opens at the fifth failure in a row, until the head of the line is due', () => {
  expect(failing(4)).toEqual({ kind: 'closed', failures: 4, since: 0 })
  const moved = afterPost(failing(4), { kind: 'failed', now: 4 * MINUTE, next: 9 * MINUTE })
  expect(moved).toEqual({
    breaker: { kind: 'open', failures: 5, since: 0, until: 9 * MINUTE },
    told: 'opened',
  })
})

test('a success between them begins a new row', () => {
  const mended = afterPost(failing(4), { kind: 'ok', now: 5 * MINUTE })
  expect(mended).toEqual({ breaker: CLOSED, told: undefined })
  expect(failing(4, 10 * MINUTE, mended.breaker)).toEqual({ kind: 'closed', failures: 4, since: 10 * MINUTE })
})

test('while it is open all wait; then one probes, and only that one', () => {
  const open = failing(5)
  expect(admit(open, 'run-1', 5 * MINUTE - 1)).toEqual({ kind: 'wait', until: 5 * MINUTE })
  const probe = admit(open, 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(probe.breaker).toMatchObject({ kind: 'half-open', probe: 'run-1', failures: 5, since: 0 })
  expect(admit(probe.breaker, 'run-2', 5 * MINUTE)).toEqual({ kind: 'wait', until: 7 * MINUTE })
  expect(admit(probe.breaker, 'run-1', 5 * MINUTE + 1).kind).toBe('go')
})

test('a probe that never comes back is replaced', () => {
  const probe = admit(failing(5), 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(admit(probe.breaker, 'run-2', 7 * MINUTE)).toMatchObject({ kind: 'go', breaker: { probe: 'run-2' } })
})

test('the probe decides', () => {
  const probe = admit(failing(5), 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(afterPost(probe.breaker, { kind: 'ok', now: 6 * MINUTE })).toEqual({ breaker: CLOSED, told: 'recovered' })
  expect(afterPost(probe.breaker, { kind: 'failed', now: 6 * MINUTE, next: 21 * MINUTE })).toEqual({
    breaker: { kind: 'open', failures: 6, since: 0, until: 21 * MINUTE },
    told: undefined,
  })
})

test('if the run that failed is dead, the next one may try in a quarter of an hour', () => {
  const end: PostEnd = { kind: 'failed', now: 10 * MINUTE, next: undefined }
  expect(afterPost(failing(5), end).breaker).toMatchObject({ kind: 'open', until: 25 * MINUTE })
})

test('after five days of nothing but failure it is disabled, and not a moment before', () => {
  const open = failing(5)
  const before = afterPost(open, { kind: 'failed', now: 5 * DAY - 1, next: 5 * DAY })
  expect(before).toMatchObject({ breaker: { kind: 'open' }, told: undefined })
  const after = afterPost(before.breaker, { kind: 'failed', now: 5 * DAY, next: 5 * DAY + 1 })
  expect(after).toEqual({
    breaker: { kind: 'disabled', failures: 7, since: 0, why: 'failing', at: 5 * DAY },
    told: 'disabled',
  })
  expect(admit(after.breaker, 'run-1', 500 * DAY)).toEqual({ kind: 'wait', until: undefined })
})

test('two failures a week apart are not five days of failure', () => {
  const moved = afterPost(failing(1), { kind: 'failed', now: 7 * DAY, next: 8 * DAY })
  expect(moved).toEqual({ breaker: { kind: 'closed', failures: 2, since: 0 }, told: undefined })
})

test('who is gone is disabled at once, and what comes later changes nothing', () => {
  const gone = afterPost(CLOSED, { kind: 'gone', now: 5 })
  expect(gone).toEqual({ breaker: { kind: 'disabled', failures: 1, since: 5, why: 'gone', at: 5 }, told: 'disabled' })
  for (const kind of ['ok', 'failed', 'gone'] as const) {
    expect(afterPost(gone.breaker, { kind, now: 9 })).toEqual({ breaker: gone.breaker, told: undefined })
  }
})

interface Step {
  readonly end: PostEnd['kind']
  readonly run: string
  readonly pause: number
}

test('whatever happens: one probe at a time, recovered only after opened, and it always comes to a try again', () => {
  const step: fc.Arbitrary<Step> = fc.record({
    end: fc.constantFrom('ok', 'failed', 'failed', 'failed'),
    run: fc.constantFrom('a', 'b'),
    pause: fc.integer({ min: 0, max: 30 * MINUTE }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let breaker = CLOSED
      let now = 1
      let isOpen = false
      let row = 0
      for (const { end, run, pause } of steps) {
        now += pause
        const first = admit(breaker, run, now)
        if (first.kind === 'wait') {
          expect(first.until).toBeGreaterThan(now)
          now = first.until ?? now
          continue
        }
        if (first.breaker.kind === 'half-open') {
          expect(admit(first.breaker, run === 'a' ? 'b' : 'a', now).kind).toBe('wait')
        }
        const moved = afterPost(first.breaker, { kind: end, now, next: now + 5_000 })
        row = end === 'ok' ? 0 : row + 1
        expect(moved.told).toBe(end === 'ok' ? (isOpen ? 'recovered' : undefined) : row === 5 ? 'opened' : undefined)
        isOpen = row >= 5
        breaker = moved.breaker
      }
    }),
    { numRuns: 500 },
  )
})
