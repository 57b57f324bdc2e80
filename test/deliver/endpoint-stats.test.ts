// Tests the stats of one endpoint: counts, percentiles and what waits, in bounded windows.
import { expect, it } from 'vitest'
import { addDurations, computePercentiles, NO_DURATIONS, toDurations } from '../../src/deliver/health/durations.ts'
import { addNotes, listSteps, NO_HISTORY, sumSteps } from '../../src/deliver/health/history.ts'
import { delivery, subscriber } from './subscriber.ts'

it('percentiles of added durations are accurate to a fifth', () => {
  let all = NO_DURATIONS
  for (let ms = 1; ms <= 1_000; ms++) all = addDurations(all, toDurations(ms))
  const { p50 = 0, p95 = 0, p99 = 0 } = computePercentiles(all) ?? {}
  for (const [found, exact] of [
    [p50, 500],
    [p95, 950],
    [p99, 990],
  ] as const) {
    expect(found).toBeGreaterThanOrEqual(exact)
    expect(found).toBeLessThanOrEqual(exact * 1.2)
  }
  expect(computePercentiles(NO_DURATIONS)).toBeUndefined()
  expect(computePercentiles(toDurations(0))).toEqual({ p50: 1, p95: 1, p99: 1 })
})

it('half hours of a history have a bounded number of steps, and older ones without distributions still count', () => {
  const note = { run: 'r', attempt: 1, status: 200, answer: '', error: '', isLast: false } as const
  const notes = Array.from({ length: 5_000 }, (_, n) => ({ ...note, at: n, ms: n * 100, latency: n * 1_000 }))
  const history = addNotes(NO_HISTORY, notes)
  expect(history.steps[0]?.responses?.length).toBeLessThan(100)
  const older = { step: 0, delivered: 2, failed: 1, dead: 0, ms: 30, latency: 20 }
  const sum = sumSteps([...listSteps(history, 0), older])
  expect([sum.delivered, sum.failed]).toEqual([5_002, 1])
  expect(sum.responses.reduce((total, [, count]) => total + count, 0)).toBe(5_000)
})

it('stats count the POSTs of one endpoint, and what waits for it', async () => {
  const [to, other] = [await subscriber({ status: 200 }, { status: 500 }), await subscriber()]
  const { app, endpoint, send } = await delivery({ retry: [] })
  const { id } = await endpoint({ url: to.url, tenant: 'mine' })
  await endpoint({ url: other.url, tenant: 'other' })
  await send(['x'], { tenant: 'other' })
  await send(['a'], { tenant: 'mine' })
  await to.reached(1)
  await send(['b'], { tenant: 'mine' })
  await expect.poll(() => app.admin.deadLetters.count()).toBe(1)
  await app.endpoints.pause(id)
  await send(['c', 'd'], { tenant: 'mine' })
  await expect
    .poll(async () => app.endpoints.stats(id))
    .toMatchObject({
      delivered: 1,
      failed: 1,
      dead: 1,
      successRate: 0.5,
    })
  const { waiting, latencyMs, responseMs, since } = await app.endpoints.stats(id, { hours: 1 })
  expect(waiting.events + waiting.inProgress).toBe(2)
  expect(latencyMs?.p50).toBeGreaterThan(0)
  expect(responseMs?.p99).toBeGreaterThanOrEqual(responseMs?.p50 ?? Infinity)
  expect(since % 1_800_000).toBe(0)
  const { steps } = await app.endpoints.stats(id)
  expect(steps.reduce((sum, step) => sum + step.delivered + step.failed, 0)).toBe(2)
})

it('rejects a window without bounds, and an unknown endpoint', async () => {
  const { app, endpoint } = await delivery()
  const { id } = await endpoint({ url: 'https://example.com/' })
  await expect(app.endpoints.stats(id, { hours: 25 })).rejects.toThrow(/hours must be a whole number from 1 to 24/)
  await expect(app.endpoints.stats('ep_none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
