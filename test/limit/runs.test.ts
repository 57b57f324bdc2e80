// M4 to M7: calls of runs, calls with a cost or under several limits, and waits that end early.
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import { RunLostError } from '../../src/limit/caller.ts'
import { createLimit } from '../../src/limit/limit.ts'
import { RateLimitDeferred } from '../../src/limit/run-context.ts'
import { failure, inRun, most, rig, settle, STORES } from './rig.ts'

const one = { rate: 1, per: '1s' } as const

describe.each(STORES)('on %s', (kind) => {
  it('M4 a call of a run that lost its lease is rejected, before it asks for a slot and after', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    let lost = true
    const made: string[] = []
    const call = (): Promise<void> =>
      inRun(() => limit.run(() => void made.push('made')), { status: () => (lost ? 'lost' : 'live') })
    expect(await failure(call())).toBeInstanceOf(RunLostError)
    expect(t.asked).toEqual([])
    lost = false
    await call()
    const waiting = failure(call())
    await t.pass(500)
    lost = true
    expect(await t.until(waiting)).toBeInstanceOf(RunLostError)
    expect(made).toEqual(['made'])
  })

  it('M4 a run that is lost while the store replies makes no call', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    let lost = false
    const waiting = failure(inRun(() => limit.run(() => 'made'), { status: () => (lost ? 'lost' : 'live') }))
    lost = true
    expect(await waiting).toBeInstanceOf(RunLostError)
  })

  it('M4 the call gets the signal of its run, its own, or a combination of both', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 9, per: '1s' }, t.process())
    const [run, own] = [new AbortController(), new AbortController()]
    expect(await limit.run((signal) => signal)).toBeUndefined()
    expect(await limit.run((signal) => signal, { signal: own.signal })).toBe(own.signal)
    const both = (): Promise<AbortSignal | undefined> =>
      inRun(() => limit.run((signal) => signal, { signal: own.signal }), { signal: run.signal })
    const [first, second] = [await both(), await inRun(() => limit.run((signal) => signal), { signal: run.signal })]
    expect([first?.aborted, second?.aborted]).toEqual([false, false])
    own.abort(new Error('enough'))
    expect([first?.aborted, second?.aborted]).toEqual([true, false])
    run.abort(new Error('out of time'))
    expect(second?.reason).toMatchObject({ message: 'out of time' })
  })

  it('M4 the result or error of the call is passed on', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 9, per: '1s' }, t.process())
    expect(await limit.run(async () => settle().then(() => 7))).toBe(7)
    const fails = limit.run(() => {
      throw new TypeError('its own')
    })
    expect(await failure(fails)).toBeInstanceOf(TypeError)
  })

  it('M5 a call with a cost takes that many slots', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 3, per: '1s' }, t.process())
    const times: Millis[] = []
    const call = (cost: number): Promise<unknown> => limit.run(() => void times.push(t.clock.monotonic()), { cost })
    await t.until(Promise.all([call(2), call(2), call(1), call(3)]))
    expect(times).toEqual([0, 1_100, 1_100, 2_200])
  })

  it('M5 several limits are reserved in one step, and each is respected', async () => {
    const t = await rig(kind)
    const parts = t.process()
    const short = createLimit('short', { rate: 2, per: '1s' }, parts)
    const long = createLimit('long', { rate: 3, per: '10s' }, parts)
    const times: Millis[] = []
    const calls = Array.from({ length: 6 }, () =>
      short.run(() => void times.push(t.clock.monotonic()), { with: [long] }),
    )
    await settle()
    expect(t.asked).toHaveLength(1)
    expect(t.asked[0]?.requests[0]?.limits.map(({ name }) => name)).toEqual(['short', 'long'])
    await t.until(Promise.all(calls))
    expect([most(times, 1_000), most(times, 10_000)]).toEqual([2, 3])
    expect(times[3]).toBeGreaterThanOrEqual(10_000)
  })

  it('M5 limit.with reserves all of its limits in one step, also for run, fetch and per', async () => {
    const t = await rig(kind)
    const fetched: Millis[] = []
    const fetch: typeof globalThis.fetch = () => {
      fetched.push(t.clock.monotonic())
      return Promise.resolve(new Response())
    }
    const parts = t.process({ fetch })
    const short = createLimit('short', { rate: 2, per: '1s' }, parts)
    const middle = createLimit('middle', { rate: 3, per: '5s' }, parts)
    const long = createLimit('long', { rate: 4, per: '60s' }, parts)
    const all = short.with(middle.with(long))
    const calls = Promise.all([
      all.fetch('https://api.test/1'),
      all.fetch('https://api.test/2'),
      all.run(() => void fetched.push(t.clock.monotonic())),
      all.run(() => void fetched.push(t.clock.monotonic()), { cost: 1 }),
      all.fetch('https://api.test/5'),
    ])
    await settle()
    const names = ['short', 'middle', 'long']
    expect(t.asked.flatMap(({ requests }) => requests.map(({ limits }) => limits.map(({ name }) => name)))).toEqual(
      Array.from({ length: 5 }, () => names),
    )
    await t.until(calls)
    expect([most(fetched, 1_000), most(fetched, 5_000), most(fetched, 60_000)]).toEqual([2, 3, 4])
    const lastNames = (): unknown => t.asked.at(-1)?.requests[0]?.limits.map(({ name }) => name)
    await t.until(all.per('ada').run(() => undefined))
    expect(lastNames()).toEqual(['short/ada', 'middle', 'long'])
    await t.until(
      short
        .with(middle)
        .with(long)
        .run(() => undefined),
    )
    expect(lastNames()).toEqual(names)
  })

  it('M6 a run whose slot is too far away is deferred, and keeps no slot; callers outside runs wait', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 1, per: '1s', maxWait: '2s' }, t.process())
    const times: Millis[] = []
    const call = (): Promise<unknown> => limit.run(() => void times.push(t.clock.monotonic()))
    await call()
    const near = [inRun(call), call()]
    await settle()
    const far = await failure(inRun(call))
    expect(far).toBeInstanceOf(RateLimitDeferred)
    expect(far).toMatchObject({ limit: 'api', after: 3_300 })
    await t.until(Promise.all([...near, call()]))
    expect(times).toEqual([0, 1_100, 2_200, 3_300])
  })

  it('M6 runs that are deferred together all return their slots', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 1, per: '1s', maxWait: 500 }, t.process())
    const tries = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        n === 0 ? limit.run(() => undefined) : failure(inRun(() => limit.run(() => n))),
      ),
    )
    expect(tries.slice(1).every((error) => error instanceof RateLimitDeferred)).toBe(true)
    expect(await t.until(limit.run(() => t.clock.monotonic()))).toBe(1_100)
  })

  it('M6 a pause during the wait of a run defers it too, by default beyond ten seconds', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    await limit.run(() => undefined)
    const waiting = failure(inRun(() => limit.run(() => 'made')))
    await settle()
    await limit.pause('12s')
    expect(await waiting).toMatchObject({ name: 'RateLimitDeferred', after: 12_000 })
  })

  it.each(['its own', "its run's"])('M7 a wait that is given up by %s signal returns its slot', async (whose) => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    const stop = new AbortController()
    await limit.run(() => undefined)
    const own = whose === 'its own'
    const call = (): Promise<unknown> => limit.run(() => 'made', own ? { signal: stop.signal } : {})
    const waits = [1, 2, 3].map(() => failure(own ? call() : inRun(call, { signal: stop.signal })))
    await t.pass(500)
    stop.abort(new Error('given up'))
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ message: 'given up' })
    expect(await t.until(limit.run(() => t.clock.monotonic()))).toBe(1_100)
  })

  it('M7 waits that are given up together return all their slots, in any order', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    await limit.run(() => undefined)
    const stops = [1, 2, 3].map(() => new AbortController())
    const waits = stops.map(({ signal }) => failure(limit.run(() => 'made', { signal })))
    await settle()
    for (const stop of stops.toReversed()) stop.abort()
    await Promise.all(waits)
    expect(await t.until(limit.run(() => t.clock.monotonic()))).toBe(1_100)
  })

  it('M7 a slot before a granted one is not returned', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    const stop = new AbortController()
    await limit.run(() => undefined)
    const given = failure(limit.run(() => 'made', { signal: stop.signal }))
    const later = limit.run(() => t.clock.monotonic())
    await settle()
    stop.abort()
    await given
    expect(await t.until(later)).toBe(2_200)
  })

  it('M7 a caller that gives up while the store replies does not wait for the slot', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    const stop = new AbortController()
    await limit.run(() => undefined)
    t.answersAfter = () => 50
    const given = failure(limit.run(() => 'made', { signal: stop.signal }))
    await t.pass(20)
    stop.abort()
    await t.until(given)
    expect(t.clock.monotonic()).toBeLessThan(100)
    expect(await t.until(limit.run(() => t.clock.monotonic()))).toBeLessThan(1_200)
  })

  it('M7 a caller whose signal is already aborted reserves nothing', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    expect(await failure(limit.run(() => 'made', { signal: AbortSignal.abort() }))).toMatchObject({
      name: 'AbortError',
    })
    expect(t.asked).toEqual([])
  })
})
