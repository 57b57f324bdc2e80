// M7, L13: when an app stops, no caller keeps waiting, and unused slots are returned.
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import { closeLimits, createLimit } from '../../src/limit/limit.ts'
import { failure, inRun, rig, settle, STORES } from './rig.ts'

const one = { rate: 1, per: '1s' } as const
const stopped = { name: 'SluiceError', code: 'APP_STOPPED' }

describe.each(STORES)('on %s', (kind) => {
  it('M7 all waiting callers are rejected, and return their slots', async () => {
    const t = await rig(kind)
    const parts = t.process()
    const limit = createLimit('api', one, parts)
    const made: number[] = []
    const waits: Promise<unknown>[] = []
    for (let n = 0; n < 40; n++) {
      const call = (): Promise<unknown> => limit.run(() => made.push(n))
      const waiting = n % 3 === 0 ? inRun(call, { mayBeDeferred: () => false }) : call()
      waits.push(waiting.catch((error: unknown) => error))
      if (n % 5 === 0) await settle()
    }
    await t.pass(1_500)
    const before = made.length
    await closeLimits(parts)
    expect(before).toBe(2)
    for (const error of (await Promise.all(waits)).slice(before)) expect(error).toMatchObject(stopped)
    const next = createLimit('api', one, t.process())
    expect(await t.until(next.run(() => t.clock.monotonic()))).toBe(2_200)
    expect(made).toHaveLength(before)
  })

  it('M7 a caller that asks at this moment is rejected too', async () => {
    const t = await rig(kind)
    const parts = t.process()
    const limit = createLimit('api', one, parts)
    await limit.run(() => undefined)
    const waiting = [1, 2, 3].map(() => failure(limit.run(() => 'made')))
    await settle()
    t.answersAfter = () => 50
    const asking = [1, 2].map(() => failure(limit.run(() => 'made')))
    await t.pass(20)
    await t.until(closeLimits(parts))
    for (const error of await Promise.all([...waiting, ...asking])) expect(error).toMatchObject(stopped)
    expect(await failure(limit.run(() => 'made'))).toMatchObject(stopped)
    t.answersAfter = () => 0
    const next = createLimit('api', one, t.process())
    expect(await t.until(next.run((): Millis => t.clock.monotonic()))).toBe(1_100)
  })

  it('M7 a slot that is granted at this moment is not used', async () => {
    const t = await rig(kind)
    const parts = t.process()
    const limit = createLimit('api', one, parts)
    t.answersAfter = () => 50
    const asking = failure(limit.run(() => 'made'))
    await t.pass(20)
    await t.until(closeLimits(parts))
    expect(await asking).toMatchObject(stopped)
  })

  it('M7 an app that has used no limit can stop', async () => {
    const t = await rig(kind)
    await closeLimits(t.process({ store: () => Promise.reject(new Error('not to be opened')) }))
    expect(t.asked).toEqual([])
  })

  it("M3 the end of a pause after the app's own end is not emitted", async () => {
    const t = await rig(kind)
    const parts = t.process()
    await createLimit('api', one, parts).pause('1m')
    await closeLimits(parts)
    await t.pass(120_000, 60_000)
    expect(t.emitted).toEqual([['limit.paused', { limit: 'api', ms: 60_000 }]])
  })
})
