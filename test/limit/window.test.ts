// M1, M2: the rate holds over all processes, calls keep the order of their requests, and no late slot is used.
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import { createLimit, type Limit } from '../../src/limit/limit.ts'
import { SlotsMissedError } from '../../src/limit/take-slot.ts'
import { failure, most, rig, settle, STORES, type Rig } from './rig.ts'

const options = { rate: 3, per: '1s' } as const
const one = { rate: 1, per: '1s' } as const

/** Each call records when it was handed over. */
function load(t: Rig, limit: Limit, calls: number, times: Millis[]): Promise<unknown> {
  return Promise.all(Array.from({ length: calls }, () => limit.run(() => void times.push(t.clock.monotonic()))))
}

describe.each(STORES)('on %s', (kind) => {
  it('M1 two processes under full load make at most `rate` calls in any window, and no fewer than they may', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const [a, b] = [createLimit('api', options, t.process()), createLimit('api', options, t.process())]
    await t.until(Promise.all([load(t, a, 15, times), load(t, b, 15, times)]))
    expect(times).toHaveLength(30)
    expect(most(times, 1_000)).toBe(3)
    expect(Math.max(...times)).toBe(9 * 1_100)
  })

  it('M1 the rate holds while the event loop stalls from time to time', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const [a, b] = [createLimit('api', options, t.process()), createLimit('api', options, t.process())]
    let n = 0
    const steps = (): Millis => (n++ % 7 === 0 ? 10 + ((n * 37) % 260) : 7)
    await t.until(Promise.all([load(t, a, 15, times), load(t, b, 15, times)]), steps)
    expect(times).toHaveLength(30)
    expect(most(times, 1_000)).toBeLessThanOrEqual(3)
  })

  it('M2 at a high rate, a process reserves slots in batches: it never has two calls in progress', async () => {
    const t = await rig(kind)
    let mostUnderWay = 0
    let underWay = 0
    t.answersAfter = () => {
      mostUnderWay = Math.max(mostUnderWay, ++underWay)
      t.clock.after(20, () => underWay--)
      return 20
    }
    const limit = createLimit('api', { rate: 500, per: '1s' }, t.process())
    const times: Millis[] = []
    const calls = Array.from({ length: 400 }, async (_, n) => {
      await new Promise<void>((resolve) => void t.clock.after(n, resolve))
      await limit.run(() => void times.push(t.clock.monotonic()))
    })
    await t.until(Promise.all(calls), () => 1)
    expect(times).toHaveLength(400)
    expect(mostUnderWay).toBe(1)
    expect(t.asked.length).toBeLessThan(50)
  })

  it('M1 the rate holds on a store with late replies', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    let n = 0
    t.answersAfter = () => (n++ % 3 === 0 ? 50 + ((n * 53) % 200) : 1)
    const [a, b] = [createLimit('api', options, t.process()), createLimit('api', options, t.process())]
    await t.until(Promise.all([load(t, a, 10, times), load(t, b, 10, times)]))
    expect(times).toHaveLength(20)
    expect(most(times, 1_000)).toBeLessThanOrEqual(3)
  })

  it('M1 with burst it is a token bucket', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    await t.until(load(t, createLimit('api', { rate: 1, per: '1s', burst: 3 }, t.process()), 5, times))
    expect(times).toEqual([0, 0, 0, 1_000, 2_000])
  })

  it('M1 a slot that passed during a stall is not used, and the call gets another one', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const done = load(t, createLimit('api', one, t.process()), 2, times)
    await settle()
    t.clock.advance(1_600)
    await settle()
    expect(times).toEqual([0])
    await t.until(done)
    expect(times).toEqual([0, 2_200])
  })

  it('M1 a slot whose confirmation came too late is not used, and another one is requested with a new ticket', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const limit = createLimit('api', one, t.process())
    t.answersAfter = () => (t.asked.length === 1 ? 150 : 0)
    await t.until(load(t, limit, 1, times))
    const tickets = t.asked.map((call) => call.requests[0]?.ticket)
    expect(times).toEqual([1_100])
    expect(tickets).toHaveLength(3)
    expect(tickets[1]).not.toBe(tickets[0])
    expect(tickets[2]).toBe(tickets[1])
  })

  it('M1 a reply that is a little late, but fresh, is used', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    t.answersAfter = () => 95
    await t.until(load(t, createLimit('api', one, t.process()), 1, times))
    expect(times).toEqual([95])
  })

  it('M1 a wait counts from the request, even if the reply takes long', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const limit = createLimit('api', one, t.process())
    await load(t, limit, 1, times)
    t.answersAfter = () => (t.asked.length === 2 ? 400 : 0)
    await t.until(load(t, limit, 1, times))
    expect(times).toEqual([0, 1_110])
  })

  it('M1 a store that takes most of the time for which a slot stays fresh is fast enough', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    t.answersAfter = () => 85
    await t.until(load(t, createLimit('api', one, t.process()), 3, times))
    expect(times).toEqual([85, 1_195, 2_295])
  })

  it('M1 a store that takes longer than a slot stays fresh is detected, and no call is made', async () => {
    const t = await rig(kind)
    t.answersAfter = () => 120
    const times: Millis[] = []
    expect(await t.until(failure(load(t, createLimit('api', one, t.process()), 1, times)))).toBeInstanceOf(
      SlotsMissedError,
    )
    expect(times).toEqual([])
  })

  it('M1 each key has a limit of its own', async () => {
    const t = await rig(kind)
    const times: Millis[] = []
    const limit = createLimit('api', one, t.process())
    expect(limit.per('a').name).toBe('api/a')
    const keys = ['a', 'b', 'a', 'b']
    await t.until(Promise.all(keys.map((key) => load(t, limit.per(key), 1, times))))
    expect(times).toEqual([0, 0, 1_100, 1_100])
  })

  it('M2 requests of one turn of the event loop are one call of the store', async () => {
    const t = await rig(kind)
    const parts = t.process()
    const [a, b] = [createLimit('a', options, parts), createLimit('b', options, parts)]
    await Promise.all([load(t, a, 3, []), load(t, b.per('k'), 2, [])])
    expect(t.asked.map((call) => call.requests.length)).toEqual([5])
    expect(new Set(t.asked[0]?.requests.map((request) => request.ticket)).size).toBe(5)
  })

  it('M2 a wait is reserved once and confirmed once, with the same ticket', async () => {
    const t = await rig(kind)
    const limit = createLimit('api', { rate: 1, per: '10s' }, t.process())
    await t.until(load(t, limit, 2, []))
    expect(t.asked.map((call) => call.requests.length)).toEqual([2, 1])
    expect(t.asked[1]?.requests[0]?.ticket).toBe(t.asked[0]?.requests[1]?.ticket)
  })

  it('M2 first come, first served, in whichever process', async () => {
    const t = await rig(kind)
    const [a, b] = [createLimit('api', one, t.process()), createLimit('api', one, t.process())]
    const order: number[] = []
    const calls: Promise<unknown>[] = []
    for (let n = 0; n < 12; n++) {
      calls.push((n % 2 === 0 ? a : b).run(() => void order.push(n)))
      await settle()
    }
    await t.until(Promise.all(calls))
    expect(order).toEqual(Array.from({ length: 12 }, (_, n) => n))
  })

  it('M2 an error of the store rejects all waiting callers, and the next caller asks again', async () => {
    const t = await rig(kind)
    const good = t.process()
    let broken = true
    const store = (): ReturnType<typeof good.store> => (broken ? Promise.reject(new Error('gone')) : good.store())
    const limit = createLimit('api', options, { ...good, store })
    const both = await Promise.allSettled([limit.run(() => 1), limit.run(() => 2)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    broken = false
    expect(await limit.run(() => 3)).toBe(3)
  })
})
