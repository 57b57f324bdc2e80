// Stats over a window: what is counted, by which process, for how long it is kept, and that neither memory nor the store grows.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Counts, CountsTable } from '../../src/observe/stats/buckets.ts'
import type { StatsResult, StatsOptions } from '../../src/admin/stats.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { MINUTE, scene, START, STORES, type Counting } from './stats-scene.ts'

const DONE = { kind: 'done' } as const
const RETRY = { kind: 'retry', after: 1_000 } as const
const DEAD = { kind: 'dead', reason: 'no', block: false } as const
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

async function docs(store: Store): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const kind of ['stats', 'stats-hours', 'stats-days']) {
    counts[kind] = (await store.readDocs({ kind, ids: undefined, after: '', n: 10_000 })).docs.length
  }
  return counts
}

/** The stats of all events, which here have one source and type. There are no lanes. */
async function counted(p: Counting, asked: StatsOptions = {}): Promise<StatsResult['groups'][number] | undefined> {
  return (await p.stats({ ...asked, by: 'source,type' })).groups[0]
}

/** Advances until nothing is left to fold, which must happen. */
async function foldAll({ recorder }: Counting): Promise<void> {
  for (let pieces = 0; (await recorder.fold()) < 1_000; pieces++) expect(pieces).toBeLessThan(100)
}

describe.each(STORES)('stats on %s', (address) => {
  it('contain arrivals per minute, durations and failures', async () => {
    const s = await scene(address)
    const p = s.process()
    for (let n = 0; n < 30; n++) {
      p.receive('shop', 'order.paid', ['bill'])
      await s.advance(10_000)
    }
    for (let n = 1; n <= 20; n++) p.end('bill', DONE, { ago: [n * 1_000] })
    p.end('bill', RETRY)
    p.end('bill', DEAD)
    p.end('bill', { kind: 'dropped', reason: 'no' })
    const { total, from, now } = await p.stats({ window: '5m' })
    expect(now - from).toBe(5 * MINUTE)
    expect(total).toMatchObject({ received: 30, receivedPerMinute: 6, done: 20, dead: 1, dropped: 1 })
    const ofKind = await counted(p, { window: '5m' })
    expect(ofKind).toMatchObject({ failing: 1 })
    expect(ofKind?.failureRate).toBeCloseTo(2 / 23)
    expect(total.meanMs).toBe(10_500)
    expect(total.p95Ms).toBeGreaterThan(19_000 * 0.9)
    expect(total.p95Ms).toBeLessThan(19_000 * 1.1)
    expect(total.deadPerDay).toBe(288)
  })

  it('an event fails once, however often it is retried, and not at all once it is done', async () => {
    const s = await scene(address)
    const p = s.process()
    p.end('f', RETRY)
    p.end('f', RETRY, { tries: 1 })
    p.end('f', DONE)
    expect(await counted(p)).toMatchObject({ failing: 1, done: 1, failureRate: 0.5 })
    p.end('f', DONE, { tries: 2 })
    expect(await counted(p)).toMatchObject({ failing: 0, done: 2, failureRate: 0 })
    p.end('f', RETRY)
    p.end('f', DEAD, { tries: 1 })
    expect(await counted(p)).toMatchObject({ failing: 0, done: 2, dead: 1, failureRate: 1 / 3 })
  })

  it('a dead letter counts once, however often it is retried by hand, and not at all once it is done', async () => {
    const s = await scene(address)
    const p = s.process()
    for (let n = 0; n < 3; n++) p.end('f', DEAD)
    p.end('f', DONE)
    p.end('f', DEAD, { deadLetter: true })
    expect(await counted(p)).toMatchObject({ dead: 3, done: 1, failureRate: 3 / 4 })
    p.end('f', RETRY, { deadLetter: true })
    expect(await counted(p)).toMatchObject({ dead: 2, failing: 1, failureRate: 3 / 4 })
    p.end('f', DEAD, { deadLetter: true, tries: 1 })
    expect(await counted(p)).toMatchObject({ dead: 3, failing: 0, failureRate: 3 / 4 })
    for (let n = 0; n < 2; n++) p.end('f', DONE, { deadLetter: true })
    p.end('f', { kind: 'dropped', reason: 'no' }, { deadLetter: true })
    // The same holds for another process, and after folding.
    await s.advance(5_000)
    const mended = { dead: 0, done: 3, dropped: 1, failing: 0, failureRate: 0 }
    expect(await counted(s.process())).toMatchObject(mended)
    await s.advance(3 * HOUR)
    await foldAll(p)
    expect(await counted(p)).toMatchObject(mended)
  })

  it('records of an older release have no retried dead letters', async () => {
    const s = await scene(address)
    const cells = [{ at: START, span: MINUTE, kinds: [['a', 'b', [1, 0, 0, 1, 0, 0, 0], []]], flows: [] }]
    const body = Buffer.from(JSON.stringify(cells))
    const id = `${String(START).padStart(15, '0')}/old`
    await s.store.writeDocs({
      writes: [{ kind: 'stats', id, ifRev: 0, body }],
      raiseRoutes: false,
      audit: undefined,
    })
    expect((await s.process().stats()).total).toMatchObject({ received: 1, dead: 1, failureRate: 1 })
  })

  it('if a part was accepted, each event counts as it ended', async () => {
    const s = await scene(address)
    const p = s.process()
    const outcome = { kind: 'partial', retry: ['e1'], dead: ['e2'], after: 0, reason: 'no', block: false } as const
    p.end('f', outcome, { ago: [1, 1, 1, 1] })
    expect(await counted(p)).toMatchObject({ done: 2, failing: 1, dead: 1, failureRate: 0.5 })
  })

  it('a replay counts as done, and its duration does not include the age of its event', async () => {
    const s = await scene(address)
    const p = s.process()
    p.end('f', DONE, { ago: [90 * DAY], rank: 1 })
    expect((await p.stats()).total).toMatchObject({ done: 1, meanMs: undefined, p95Ms: undefined })
  })

  it('without any event there are no values, and no division by zero', async () => {
    const s = await scene(address)
    const { total, groups } = await s.process().stats({ by: 'flow' })
    expect(groups).toEqual([])
    expect(total).toEqual({
      received: 0,
      receivedPerMinute: 0,
      done: 0,
      dropped: 0,
      dead: 0,
      deadPerDay: 0,
      failing: 0,
      failureRate: undefined,
      meanMs: undefined,
      p95Ms: undefined,
      depth: 0,
      oldest: undefined,
    })
  })

  it('are grouped by source, type, both or flow', async () => {
    const s = await scene(address)
    const p = s.process()
    p.receive('shop', 'paid', ['bill', 'mail'])
    p.receive('shop', 'sent', ['mail'])
    p.receive('garmin', 'sent')
    p.end('mail', DONE, { source: 'garmin', type: 'sent' })
    const by = async (names: Parameters<typeof p.stats>[0]): Promise<unknown> =>
      (await p.stats(names)).groups.map(({ source, type, flow, received, done }) => [
        source,
        type,
        flow,
        received,
        done,
      ])
    expect(await by({ by: 'source,type' })).toEqual([
      ['garmin', 'sent', undefined, 1, 1],
      ['shop', 'paid', undefined, 1, 0],
      ['shop', 'sent', undefined, 1, 0],
    ])
    expect(await by({ by: 'source' })).toEqual([
      ['garmin', undefined, undefined, 1, 1],
      ['shop', undefined, undefined, 2, 0],
    ])
    expect(await by({ by: 'type' })).toEqual([
      [undefined, 'paid', undefined, 1, 0],
      [undefined, 'sent', undefined, 2, 1],
    ])
    expect(await by({ by: 'flow' })).toEqual([
      [undefined, undefined, 'bill', 1, 0],
      [undefined, undefined, 'mail', 2, 1],
    ])
    expect(await by({})).toEqual([])
  })

  it('internal events do not count', async () => {
    const s = await scene(address)
    const p = s.process()
    p.receive('sluice.delayed', 'x', ['sluice.delayed'])
    p.end('sluice.delayed', DONE, { source: 'sluice.delayed' })
    expect((await p.stats()).total).toMatchObject({ received: 0, done: 0 })
  })

  it("two processes see the same: each its own counts at once, and the other's within seconds", async () => {
    const s = await scene(address)
    const [one, two] = [s.process(), s.process()]
    one.receive('shop', 'paid')
    two.receive('shop', 'paid')
    expect((await one.stats()).total.received).toBe(1)
    await s.advance(5_000)
    expect((await one.stats()).total.received).toBe(2)
    expect((await two.stats()).total.received).toBe(2)
    for (const each of [one, two]) await each.recorder.stop()
    expect((await s.process().stats()).total.received).toBe(2)
  })

  it('a killed process loses its last seconds, and nothing that was written', async () => {
    const s = await scene(address)
    const [killed, other] = [s.process(), s.process()]
    killed.receive('shop', 'paid')
    await s.advance(5_000)
    killed.receive('shop', 'paid')
    expect((await other.stats()).total.received).toBe(1)
  })

  it('a window includes what lies in it: minutes for two hours, tens of minutes for a week', async () => {
    const s = await scene(address)
    const p = s.process()
    const read = async (window: `${number}${'m' | 'h' | 'd'}`): Promise<number> =>
      (await p.stats({ window })).total.received
    for (let minute = 0; minute < 8 * 60; minute++) {
      p.receive('shop', 'paid')
      await s.advance(MINUTE)
      if (minute % 10 === 9) await foldAll(p)
    }
    expect(await read('1m')).toBe(1)
    expect(await read('5m')).toBe(5)
    expect(await read('90m')).toBe(90)
    expect(await read('6h')).toBe(360)
    expect(await read('7d')).toBe(480)
    await s.advance(3 * MINUTE)
    expect(await read('3m')).toBe(0)
    // Ten minutes are not split any more: the window reports where it begins.
    const { total, from, now } = await p.stats({ window: '6h' })
    expect(total.received).toBe(360)
    expect(now - from).toBe(6 * HOUR + 3 * MINUTE)
  })

  it('the records of all processes are folded into one document per hour, then per day, and forgotten after eight days', async () => {
    const s = await scene(address)
    const processes = [s.process(), s.process(), s.process()]
    for (let block = 0; block < 12; block++) {
      for (const p of processes) {
        p.receive('shop', 'paid', ['bill'])
        p.end('bill', DONE, { ago: [block * 1_000] })
      }
      await s.advance(10 * MINUTE)
    }
    const [p] = processes
    const before = await p?.stats({ window: '7d', by: 'flow' })
    expect(await docs(s.store)).toEqual({ stats: 36, 'stats-hours': 0, 'stats-days': 0 })
    await s.advance(2 * HOUR)
    // Two simultaneous folds count once.
    for (let n = 0; n < 5; n++) await Promise.all(processes.map((each) => each.recorder.fold()))
    expect(await docs(s.store)).toEqual({ stats: 0, 'stats-hours': 2, 'stats-days': 0 })
    const after = await p?.stats({ window: '7d', by: 'flow' })
    expect([after?.total, after?.groups]).toEqual([before?.total, before?.groups])
    expect(after?.total).toMatchObject({ received: 36, done: 36, meanMs: 5_500 })
    await s.advance(DAY)
    for (let n = 0; n < 5; n++) await Promise.all(processes.map((each) => each.recorder.fold()))
    expect(await docs(s.store)).toEqual({ stats: 0, 'stats-hours': 0, 'stats-days': 1 })
    const later = await p?.stats({ window: '7d', by: 'flow' })
    expect([later?.total, later?.groups]).toEqual([before?.total, before?.groups])
    await s.advance(8 * DAY)
    expect((await p?.stats({ window: '7d' }))?.total.received).toBe(0)
    if (p !== undefined) await foldAll(p)
    expect(await docs(s.store)).toEqual({ stats: 0, 'stats-hours': 0, 'stats-days': 0 })
  })

  it('only the first hundred types per minute get a row of their own', async () => {
    const s = await scene(address)
    const p = s.process()
    p.receive('shop', 'x'.repeat(10_000))
    for (let n = 0; n < 5_000; n++) p.receive('shop', `t${n}`)
    const { groups, total } = await p.stats({ by: 'source,type' })
    expect(groups).toHaveLength(100)
    expect(groups[0]).toMatchObject({ source: '(other)', type: '(other)', received: 4_902 })
    expect(total.received).toBe(5_001)
    await s.advance(5_000)
    const [doc] = (await s.store.readDocs({ kind: 'stats', ids: undefined, after: '', n: 1 })).docs
    expect(doc?.body.length).toBeLessThan(10_000)
  })

  it('a process that counts nothing writes nothing and sets no timer', async () => {
    const s = await scene(address)
    const p = s.process()
    p.receive('shop', 'paid')
    await s.advance(20 * MINUTE)
    const { docs: before } = await s.store.readDocs({ kind: 'stats', ids: undefined, after: '', n: 10 })
    expect(s.clock.next()).toBeUndefined()
    await s.advance(DAY)
    const { docs: after } = await s.store.readDocs({ kind: 'stats', ids: undefined, after: '', n: 10 })
    expect(after.map(({ rev }) => rev)).toEqual(before.map(({ rev }) => rev))
  })

  it('while the store fails, stats are lost but memory stays bounded; the rest is written when the store works again', async () => {
    const s = await scene(address)
    let isBroken = true
    const store = new Proxy(s.store, {
      get: (target, name): unknown =>
        isBroken && name === 'writeDocs' ? () => Promise.reject(new Error('no')) : Reflect.get(target, name),
    })
    const p = s.process(store)
    for (let block = 0; block < 30; block++) {
      p.receive('shop', 'paid')
      await s.advance(10 * MINUTE)
    }
    expect((await p.stats()).total.received).toBe(12)
    isBroken = false
    await s.advance(MINUTE)
    expect((await s.process().stats()).total.received).toBe(12)
  })

  it('a record that was folded before its process wrote the rest is not counted twice', async () => {
    const s = await scene(address)
    let isBroken = false
    const store = new Proxy(s.store, {
      get: (target, name): unknown =>
        isBroken && name === 'writeDocs' ? () => Promise.reject(new Error('no')) : Reflect.get(target, name),
    })
    const [p, other] = [s.process(store), s.process()]
    p.receive('shop', 'paid')
    await s.advance(6_000)
    isBroken = true
    p.receive('shop', 'paid')
    await s.advance(3 * HOUR)
    await foldAll(other)
    isBroken = false
    await s.advance(MINUTE)
    expect((await p.stats()).total.received).toBe(1)
    expect((await other.stats()).total.received).toBe(1)
  })

  it('a record that is folded during a read is counted once', async () => {
    const s = await scene(address)
    const [p, other] = [s.process(), s.process()]
    p.receive('shop', 'paid')
    await s.advance(3 * HOUR)
    for (const folds of ['stats', 'stats-hours', 'stats-days']) {
      const store = new Proxy(s.store, {
        get: (target, name): unknown => {
          if (name !== 'readDocs') return Reflect.get(target, name)
          return async (call: Parameters<Store['readDocs']>[0]) => {
            const reply = await target.readDocs(call)
            if (call.kind === folds && call.ids === undefined) await other.recorder.fold()
            return reply
          }
        },
      })
      expect([folds, (await s.process(store).stats({ window: '7d' })).total.received]).toEqual([folds, 1])
      await s.advance(DAY)
    }
  })

  it('a clock that jumps back does not stop the counting', async () => {
    const s = await scene(address)
    const p = s.process()
    p.receive('shop', 'paid')
    await s.advance(11 * MINUTE)
    s.clock.set(START)
    p.receive('shop', 'paid')
    await s.advance(6_000)
    expect((await s.process().stats({ window: '10m' })).total.received).toBe(2)
  })

  it.each([
    [{ window: '59s' }, 'stats.window'],
    [{ window: '8d' }, 'stats.window'],
    [{ window: 'a day' }, 'stats.window'],
    [{ by: 'key' }, 'by'],
    [{ per: 'flow' }, 'per'],
  ])('refuses %j', async (asked, named) => {
    const s = await scene(address)
    await expect(s.process().stats(asked as never)).rejects.toThrow(named)
  })
})

describe('counts', () => {
  it('a percentile is exact to ten percent', () => {
    const times = fc.array(fc.double({ min: 1, max: 8 * DAY, noNaN: true }), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(times, fc.constantFrom(0.5, 0.9, 0.95, 0.99), (all, share) => {
        const counts = new Counts()
        for (const ms of all) counts.addTime(ms)
        const sorted = all.toSorted((a, b) => a - b)
        const truth = sorted[Math.ceil(share * all.length) - 1] ?? 0
        const told = counts.quantile(share) ?? 0
        expect(Math.abs(told - truth) / truth).toBeLessThan(0.1)
      }),
    )
  })

  it('serialized and added counts are the same as before', () => {
    const one = new CountsTable()
    one.get('a', 'b').received = 3
    one.get('a', 'b').addTime(7)
    one.get('a', 'b').countEnd('dead', 'failing')
    one.get('a', 'b').countEnd('done', 'dead')
    Object.assign(one.get('a', 'b'), { runs: 4, failedRuns: 1, lateMs: 9 })
    const two = new CountsTable()
    two.add(one.toStored())
    two.add(one.toStored())
    expect(two.toStored()).toEqual([['a', 'b', [6, 2, 0, 2, 0, 2, 14, 2, 8, 2, 9], [23, 2]]])
  })
})
