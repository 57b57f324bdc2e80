// M3: pauses, from a 429 or from an operator, apply to every process.
import { describe, expect, it } from 'vitest'
import type { Clock, Millis } from '../../src/clock.ts'
import { createLimit } from '../../src/limit/limit.ts'
import { failure, rig, settle, STORES } from './rig.ts'

const methods = (clock: Clock): Clock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  after: (delay, call) => clock.after(delay, call),
})

const one = { rate: 1, per: '1s' } as const

describe.each(STORES)('on %s', (kind) => {
  it('M3 a pause moves all waiting callers behind its end, in their order, in every process', async () => {
    const t = await rig(kind)
    const [a, b] = [createLimit('api', one, t.process()), createLimit('api', one, t.process())]
    const calls: [string, Millis][] = []
    const call = (name: string) => (): void => void calls.push([name, t.clock.monotonic()])
    const all: Promise<void>[] = []
    for (const [limit, name] of [
      [a, 'a1'],
      [b, 'b1'],
      [a, 'a2'],
    ] as const) {
      all.push(limit.run(call(name)))
      await settle()
    }
    await t.pass(500)
    await b.pause('10s')
    await t.until(Promise.all(all))
    expect(calls).toEqual([
      ['a1', 0],
      ['b1', 10_500],
      ['a2', 11_600],
    ])
    expect(t.emitted).toEqual([
      ['limit.paused', { limit: 'api', ms: 10_000 }],
      ['limit.resumed', { limit: 'api' }],
    ])
  })

  it('M3 a waiting caller learns at once that a pause is over, and keeps its place', async () => {
    const t = await rig(kind)
    const [a, b] = [createLimit('api', one, t.process()), createLimit('api', one, t.process())]
    await b.pause('1h')
    const calls: [number, Millis][] = []
    const all: Promise<void>[] = []
    for (const n of [0, 1, 2]) {
      all.push((n === 1 ? b : a).run(() => void calls.push([n, t.clock.monotonic()])))
      await settle()
    }
    await t.pass(1_000, 500)
    await b.resume()
    all.push(a.run(() => void calls.push([3, t.clock.monotonic()])))
    await t.until(Promise.all(all))
    expect(calls).toEqual([
      [0, 1_000],
      [1, 2_100],
      [2, 3_200],
      [3, 4_300],
    ])
  })

  it('M7 a caller that gives up does not make all others ask again', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    const stop = new AbortController()
    const all = [1, 2, 3].map(() => limit.run(() => undefined))
    const given = failure(limit.run(() => undefined, { signal: stop.signal }))
    await settle()
    stop.abort()
    await given
    await settle()
    expect(t.asked).toHaveLength(1)
    await t.until(Promise.all(all))
  })

  it('M3 the end of a pause is emitted once, at the end of the longest pause', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    await limit.pause('10s')
    await t.pass(5_000, 5_000)
    await limit.pause('10s')
    await limit.pause('1s')
    await t.pass(9_000, 1_000)
    expect(t.emitted.map(([name]) => name)).toEqual(['limit.paused', 'limit.paused', 'limit.paused'])
    await t.pass(1_000, 1_000)
    expect(t.emitted.at(-1)).toEqual(['limit.resumed', { limit: 'api' }])
    await limit.pause('1m')
    await limit.resume()
    await t.pass(120_000, 60_000)
    expect(t.emitted.slice(4).map(([name]) => name)).toEqual(['limit.paused', 'limit.resumed'])
  })

  it('M1 a stall that holds up calls is reported as one pause', async () => {
    const t = await rig(kind)
    let stood = 0
    const clock = { ...methods(t.clock), monotonic: () => t.clock.monotonic() + stood }
    const limit = createLimit('api', { rate: 3, per: '1s' }, t.process({ clock }))
    await Promise.all([1, 2, 3].map(() => limit.run(() => undefined)))
    stood += 300
    await t.pass(5)
    expect(t.emitted).toEqual([['limit.paused', { limit: 'api', ms: 1_100 }]])
    await t.pass(1_100, 100)
    expect(t.emitted.slice(1)).toEqual([['limit.resumed', { limit: 'api' }]])
  })

  it('M3 after a 429 the limit has half its rate, until somebody resumes it', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    const times: Millis[] = []
    const twice = (): Promise<unknown> =>
      Promise.all([1, 2].map(() => limit.run(() => void times.push(t.clock.monotonic()))))
    await limit.pause(new Response(null, { status: 429, headers: { 'retry-after': '2' } }))
    await t.until(twice())
    expect(times[0]).toBe(2_000)
    expect((times[1] ?? 0) - 2_000).toBeGreaterThan(1_950)
    await t.pass(5_000, 500)
    await limit.resume()
    const from = t.clock.monotonic()
    await t.until(twice())
    expect(times.slice(2)).toEqual([from, from + 1_100])
    const names = t.emitted.map(([name]) => name)
    expect(names).toEqual(['limit.paused', 'limit.slowed', 'limit.resumed', 'limit.resumed'])
  })

  it('M3 a response without a time pauses nothing unless it is a 429; a response with a time does, whatever its status', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    await limit.pause(new Response(null, { status: 500 }))
    expect(t.emitted).toEqual([])
    await limit.pause(new Response(null, { status: 403, headers: { 'retry-after': '7' } }))
    expect(t.emitted[0]).toEqual(['limit.paused', { limit: 'api', ms: 7_000 }])
  })

  it('M3 a pause of the limit of one key does not affect other keys', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', one, t.process())
    await limit.per('a').pause('1m')
    expect(await limit.per('b').run(() => 'at once')).toBe('at once')
  })

  it('M3 calls that the API has counted count', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 5, per: '10s' }, t.process())
    await limit.observe({ used: 4, resetsAt: t.clock.now() + 3_000 })
    const times: Millis[] = []
    await t.until(Promise.all([1, 2].map(() => limit.run(() => void times.push(t.clock.monotonic())))))
    expect(times[0]).toBe(0)
    expect(times[1]).toBeGreaterThanOrEqual(3_000)
    expect(t.emitted).toEqual([])
  })

  it('M3 a limit that is used up at the API is paused until it resets', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 5, per: '10s' }, t.process())
    await limit.observe({ used: 100, of: 100, resetsAt: new Date(t.clock.now() + 30_000) })
    const at = await t.until(limit.run(() => t.clock.monotonic()))
    expect(at).toBe(30_000)
    expect(t.emitted).toEqual([
      ['limit.paused', { limit: 'api', ms: 30_000 }],
      ['limit.resumed', { limit: 'api' }],
    ])
  })

  it('M3 the number of calls that the API still accepts counts, while its window lasts', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 5, per: '10s' }, t.process())
    await limit.observe({ used: 60, of: 100, resetsAt: t.clock.now() + 30_000 })
    await limit.observe({ used: 5, resetsAt: t.clock.now() - 1 })
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => limit.run(() => t.clock.monotonic())))
    expect(all).toEqual([0, 0, 0, 0, 0])
    expect(t.emitted).toEqual([])
  })
})

it.each([
  [{ used: -1, resetsAt: Date.UTC(2030, 0, 1) }, 'used must be a number of calls; got -1'],
  [{ used: 1, of: Number.NaN, resetsAt: Date.UTC(2030, 0, 1) }, 'of must be a number of calls; got NaN'],
  [{ used: 1, resetsAt: Date.UTC(2030, 0, 1) / 1_000 }, 'milliseconds (not seconds)'],
])('M3 an observation that cannot be is refused: %j', async (seen, message) => {
  const t = await rig('memory')
  const error = await failure(createLimit('api', one, t.process()).observe(seen))
  expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) as string })
})
