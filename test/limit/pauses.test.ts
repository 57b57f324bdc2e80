// M3: pauses, from a 429 or from an operator, apply to every process.
import { describe, expect, it } from 'vitest'
import type { Clock, Millis } from '../../src/clock.ts'
import { createLimit, type Limit, type LimitDependencies } from '../../src/limit/limit.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { failure, rig, settle, STORES, type Rig } from './rig.ts'

/** Another process, whose event loop can be blocked: its monotonic clock then goes on, and none of its code runs. */
function stallable(t: Rig): { readonly process: LimitDependencies; readonly stall: (ms: Millis) => void } {
  let stood = 0
  const clock: Clock = {
    now: () => t.clock.now(),
    monotonic: () => t.clock.monotonic() + stood,
    after: (delay, call) => t.clock.after(delay, call),
  }
  return { process: t.process({ clock }), stall: (ms) => void (stood += ms) }
}

const one = { rate: 1, per: '1s' } as const

function perSecond(rate: number, deps: LimitDependencies): Limit {
  return createLimit(`${rate} per second`, { rate, per: '1s' }, deps)
}

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

  it('M1 calls that a stall has held up count as made at its end, and pause nothing', async () => {
    const t = await rig(kind)
    const { process, stall } = stallable(t)
    const other = t.process()
    const times: Millis[] = []
    for (const rate of [3, 8]) {
      await Promise.all([1, 2, 3].map(() => perSecond(rate, process).run(() => undefined)))
    }
    stall(300)
    await t.pass(5)
    // Of eight, two are left. Of three, none is left before the calls that left at the end of the stall are out of the window.
    const left = [perSecond(8, other), perSecond(8, process), perSecond(3, other), perSecond(3, process)]
    await t.until(Promise.all(left.map((limit) => limit.run(() => void times.push(t.clock.monotonic())))))
    expect(times).toEqual([5, 5, 1_105, 1_105])
    expect(t.emitted).toEqual([])
  })

  it('M1 a stall costs a limit of many hours no more than the calls that it held up', async () => {
    const t = await rig(kind)
    const { process, stall } = stallable(t)
    const day = createLimit('day', { rate: 3, per: '24h' }, process)
    await day.run(() => undefined)
    stall(10_000)
    await t.pass(5)
    await day.run(() => undefined)
    expect(t.clock.monotonic()).toBe(5)
  })

  it('M1 after a stall, no call is made before the store knows of it', async () => {
    const t = await rig(kind)
    const { process, stall } = stallable(t)
    let isDown = true
    const store = async (): Promise<Store> =>
      new Proxy(t.store, {
        get(target, member) {
          const value: unknown = Reflect.get(target, member)
          if (typeof value !== 'function') return value
          return member === 'regulate' && isDown
            ? () => Promise.reject(new Error('The store is down.'))
            : (value.bind(target) as unknown)
        },
      })
    const limit = createLimit('api', { rate: 4, per: '1s' }, { ...process, store })
    await limit.run(() => undefined)
    stall(300)
    expect(await failure(limit.run(() => undefined))).toMatchObject({ message: 'The store is down.' })
    isDown = false
    const next = await t.until(limit.run(() => t.clock.monotonic()))
    expect(next).toBe(1_100)
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
