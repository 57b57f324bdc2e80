// M1 to M4 in flows: a rate that two processes share, and the reaction to a 429 of the API.
import { describe, expect, test } from 'vitest'
import { calling, most, network, ok, refused, timed, users } from './limit-scene.ts'
import { Gate, keysOf, ping, sendNow, Shared, STORES, type Declare } from './scene.ts'

describe.each(STORES)('M1 M2 one rate on %s', (store) => {
  test('M1 any window has at most `rate` calls, over two apps', async () => {
    const shared = await Shared.open(store)
    const calls: number[] = []
    const by = new Set<string>()
    const declare = (name: string): Declare =>
      calling({ rate: 3, per: '1s' }, (limit) => limit.run(() => (by.add(name), calls.push(shared.clock.monotonic()))))
    const a = await shared.process('a', declare('a'), { maxConcurrentRuns: 4 })
    const b = await shared.process('b', declare('b'), { maxConcurrentRuns: 4 })
    for (const [n, one] of users(40).entries()) {
      await (n % 2 === 0 ? a : b).publish(one)
      await shared.advance(n % 7)
    }
    await shared.advance(30_000)
    expect(calls).toHaveLength(40)
    expect(most(calls, 1_000)).toBe(3)
    expect(by.size).toBe(2)
    // The slack costs some throughput: 3 calls per 1.1 s.
    expect((calls.at(-1) ?? 0) - (calls[0] ?? 0)).toBeLessThan(16_000)
  })

  test('M2 calls are made in the order in which they were requested', async () => {
    const { t, calls } = await timed(store, { rate: 2, per: '1s' })
    for (const one of users(10)) await sendNow(t, one)
    await t.advance('10s')
    expect(calls.map(([key]) => key)).toEqual(keysOf(t))
    expect(calls).toHaveLength(10)
  })

  test('M1 burst allows that many calls at once, then the rate applies', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '1s', burst: 5 })
    await sendNow(t, users(8))
    expect(calls).toHaveLength(5)
    await t.advance('1s')
    expect(calls).toHaveLength(6)
    await t.advance('2s')
    expect(calls).toHaveLength(8)
  })

  test('M1 per-key limits have the same numbers for each key', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '1s' }, (limit, { key }) =>
      limit.per(key.slice(0, 1)).run(() => calls.push([key, t.elapsed])),
    )
    await sendNow(t, [ping('a1'), ping('a2'), ping('b1'), ping('b2')])
    expect(calls.map(([key]) => key).toSorted()).toEqual(['a1', 'b1'])
    await t.advance('1100ms')
    expect(calls.map(([key]) => key).toSorted()).toEqual(['a1', 'a2', 'b1', 'b2'])
  })
})

describe.each(STORES)('M3 M4 a 429 of the API on %s', (store) => {
  test('M3 a 429 pauses the limit for both apps, and halves its rate afterwards', async () => {
    const shared = await Shared.open(store)
    const calls = network(() => shared.clock.monotonic(), refused, ok)
    const declare = calling({ rate: 1, per: '2s', maxWait: '2h' }, (limit) => limit.fetch('http://x.test/'), '3h')
    const a = await shared.process('a', declare)
    const b = await shared.process('b', declare)
    const paused: number[] = []
    a.on('limit.paused', ({ ms }) => void paused.push(ms))
    await a.publish(ping('u0'))
    await shared.advance(100)
    expect(paused).toEqual([30_000])
    const at = calls[0] ?? 0
    await b.publish(users(4).slice(1))
    await shared.advance(29_000)
    expect(calls).toHaveLength(1)
    await shared.advance(15_000)
    expect(calls).toHaveLength(4)
    expect((calls[1] ?? 0) - at).toBeGreaterThanOrEqual(30_000)
    for (const [n, one] of calls.slice(2).entries()) {
      expect(one - (calls[n + 1] ?? 0)).toBeGreaterThan(3_900)
      expect(one - (calls[n + 1] ?? 0)).toBeLessThan(4_250)
    }
    // The rate recovers by 10 % per minute.
    await shared.advance(10 * 60_000)
    await b.publish([ping('x'), ping('y')])
    await shared.advance(3_000)
    expect((calls[5] ?? 0) - (calls[4] ?? 0)).toBeLessThanOrEqual(2_110)
  })

  test('M3 a pause also applies to callers that already wait for their slots', async () => {
    const { t, calls } = await timed(store, { rate: 1, per: '1s', maxWait: '2h' }, async (limit, { key }) => {
      await limit.run(() => calls.push([key, t.elapsed]))
      if (key === 'u0') await limit.pause('20s')
    })
    await sendNow(t, users(3))
    await t.advance('19s')
    expect(calls).toHaveLength(1)
    await t.advance('4s')
    expect(calls.map(([key]) => key)).toEqual(['u0', 'u1', 'u2'])
  })

  test('M4 without retries the 429 is the response; each retry takes a slot of its own', async () => {
    for (const [retries, status, times] of [
      [0, 429, 1],
      [2, 200, 2],
    ] as const) {
      const seen: number[] = []
      const { t } = await timed(store, { rate: 5, per: '1s', retries, maxWait: '1m' }, async (limit) => {
        seen.push((await limit.fetch('http://x.test/')).status)
      })
      const calls = network(() => t.elapsed, refused, ok)
      await sendNow(t, ping('u'))
      await t.advance('40s')
      expect(seen).toEqual([status])
      expect(calls).toHaveLength(times)
      if (times > 1) expect((calls[1] ?? 0) - (calls[0] ?? 0)).toBeGreaterThanOrEqual(30_000)
    }
  })

  test('M3 observe adds the calls that the API has counted', async () => {
    const { t, calls } = await timed(store, { rate: 3, per: '10s', maxWait: '1m' }, async (limit, { key }) => {
      if (key === 'told') return limit.observe({ used: 3, of: 3, resetsAt: Date.UTC(2026, 0, 1) + t.elapsed + 8_000 })
      return limit.run(() => calls.push([key, t.elapsed]))
    })
    await sendNow(t, ping('told'))
    await sendNow(t, ping('u'))
    await t.advance('7s')
    expect(calls).toEqual([])
    await t.advance('4s')
    expect(calls).toHaveLength(1)
  })

  test('M4 a call of a run that lost its lease is rejected', async () => {
    const gate = new Gate()
    const shared = await Shared.open(store)
    const errors: unknown[] = []
    const calls: string[] = []
    const declare = calling({ rate: 5, per: '1s' }, async (limit, { key }) => {
      await gate.wait(key)
      await limit.run(() => calls.push(key)).catch((error: unknown) => errors.push(error))
    })
    const a = await shared.process('a', declare)
    await a.publish(ping('u'))
    await shared.advance(100)
    // The store's clock jumps forward: the lease is over there, and the next heartbeat finds out.
    shared.clock.set(shared.clock.now() + 3_600_000)
    await shared.advance(12_000)
    gate.open('u')
    await shared.settled()
    expect(calls).toEqual([])
    expect(errors).toHaveLength(1)
  })
})
