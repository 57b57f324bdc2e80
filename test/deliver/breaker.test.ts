// Tests the breaker of an endpoint: when it opens, which run may probe, how it closes, and when it disables the
// endpoint.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  admit,
  transitionAfterPost,
  CLOSED,
  type Breaker,
  type BreakerInput,
} from '../../src/deliver/health/breaker.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Fails this many times, a minute apart from `from` on. The next attempt would be in a minute. */
function failing(times: number, from = 0, breaker: Breaker = CLOSED): Breaker {
  let state = breaker
  for (let n = 0; n < times; n++) {
    const now = from + n * MINUTE
    state = transitionAfterPost(state, { disableAfter: 5 * DAY, kind: 'failed', now, next: now + MINUTE }).breaker
  }
  return state
}

test('the breaker opens at the fifth failure in a row, until the head of the lane is due', () => {
  expect(failing(4)).toEqual({ kind: 'closed', failures: 4, since: 0 })
  const moved = transitionAfterPost(failing(4), {
    disableAfter: 5 * DAY,
    kind: 'failed',
    now: 4 * MINUTE,
    next: 9 * MINUTE,
  })
  expect(moved).toEqual({
    breaker: { kind: 'open', failures: 5, since: 0, until: 9 * MINUTE },
    event: 'opened',
  })
})

test('a success resets the count of failures', () => {
  const mended = transitionAfterPost(failing(4), { disableAfter: 5 * DAY, kind: 'ok', now: 5 * MINUTE })
  expect(mended).toEqual({ breaker: CLOSED, event: undefined })
  expect(failing(4, 10 * MINUTE, mended.breaker)).toEqual({ kind: 'closed', failures: 4, since: 10 * MINUTE })
})

test('while the breaker is open all runs wait; then exactly one probes', () => {
  const open = failing(5)
  expect(admit(open, 'run-1', 5 * MINUTE - 1)).toEqual({ kind: 'wait', until: 5 * MINUTE })
  const probe = admit(open, 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(probe.breaker).toMatchObject({ kind: 'half-open', probe: 'run-1', failures: 5, since: 0 })
  expect(admit(probe.breaker, 'run-2', 5 * MINUTE)).toEqual({ kind: 'wait', until: 7 * MINUTE })
  expect(admit(probe.breaker, 'run-1', 5 * MINUTE + 1).kind).toBe('go')
})

test('a probe that never returns is replaced', () => {
  const probe = admit(failing(5), 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(admit(probe.breaker, 'run-2', 7 * MINUTE)).toMatchObject({ kind: 'go', breaker: { probe: 'run-2' } })
})

test('the result of the probe closes or reopens the breaker', () => {
  const probe = admit(failing(5), 'run-1', 5 * MINUTE)
  if (probe.kind !== 'go') throw new Error('Nobody probes.')
  expect(transitionAfterPost(probe.breaker, { disableAfter: 5 * DAY, kind: 'ok', now: 6 * MINUTE })).toEqual({
    breaker: CLOSED,
    event: 'recovered',
  })
  expect(
    transitionAfterPost(probe.breaker, { disableAfter: 5 * DAY, kind: 'failed', now: 6 * MINUTE, next: 21 * MINUTE }),
  ).toEqual({
    breaker: { kind: 'open', failures: 6, since: 0, until: 21 * MINUTE },
    event: undefined,
  })
})

test('after a dead run the next one may probe in 15 minutes', () => {
  const end: BreakerInput = { disableAfter: 5 * DAY, kind: 'failed', now: 10 * MINUTE, next: undefined }
  expect(transitionAfterPost(failing(5), end).breaker).toMatchObject({
    kind: 'open',
    until: 25 * MINUTE,
  })
})

test('five days of failures disable the endpoint, and not earlier', () => {
  const open = failing(5)
  const before = transitionAfterPost(open, { disableAfter: 5 * DAY, kind: 'failed', now: 5 * DAY - 1, next: 5 * DAY })
  expect(before).toMatchObject({ breaker: { kind: 'open' }, event: undefined })
  const after = transitionAfterPost(before.breaker, {
    disableAfter: 5 * DAY,
    kind: 'failed',
    now: 5 * DAY,
    next: 5 * DAY + 1,
  })
  expect(after).toEqual({
    breaker: { kind: 'disabled', failures: 7, since: 0, why: 'failing', at: 5 * DAY },
    event: 'disabled',
  })
  expect(admit(after.breaker, 'run-1', 500 * DAY)).toEqual({ kind: 'wait', until: undefined })
})

test('two failures a week apart do not disable the endpoint', () => {
  const moved = transitionAfterPost(failing(1), { disableAfter: 5 * DAY, kind: 'failed', now: 7 * DAY, next: 8 * DAY })
  expect(moved).toEqual({ breaker: { kind: 'closed', failures: 2, since: 0 }, event: undefined })
})

test('a 410 disables the endpoint at once, and later results change nothing', () => {
  const gone = transitionAfterPost(CLOSED, { disableAfter: 5 * DAY, kind: 'gone', now: 5 })
  expect(gone).toEqual({ breaker: { kind: 'disabled', failures: 1, since: 5, why: 'gone', at: 5 }, event: 'disabled' })
  for (const kind of ['ok', 'failed', 'gone'] as const) {
    expect(transitionAfterPost(gone.breaker, { disableAfter: 5 * DAY, kind, now: 9 })).toEqual({
      breaker: gone.breaker,
      event: undefined,
    })
  }
})

interface Step {
  readonly end: BreakerInput['kind']
  readonly run: string
  readonly pause: number
}

test('in every history there is one probe at a time, `recovered` only follows `opened`, and another attempt always comes', () => {
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
        const moved = transitionAfterPost(first.breaker, { disableAfter: 5 * DAY, kind: end, now, next: now + 5_000 })
        row = end === 'ok' ? 0 : row + 1
        expect(moved.event).toBe(end === 'ok' ? (isOpen ? 'recovered' : undefined) : row === 5 ? 'opened' : undefined)
        isOpen = row >= 5
        breaker = moved.breaker
      }
    }),
    { numRuns: 500 },
  )
})
