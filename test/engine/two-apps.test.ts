// L20 and schedules: two processes on one store share one concurrency, and run each tick once.
import { describe, expect, test } from 'vitest'
import { Sluice, type Store } from '../../src/index.ts'
import { Gate, ping, Shared, STORES, userOf } from './scene.ts'

/** Which process runs what, and the maximum at the same time. */
class Watch {
  readonly gate: Gate = new Gate()
  readonly began: string[] = []
  readonly by = new Set<string>()
  live = 0
  most = 0

  declare(process: string, concurrency: number): (app: Sluice) => unknown {
    return (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        concurrency,
        run: async ({ key }) => {
          this.began.push(key)
          this.by.add(process)
          this.most = Math.max(this.most, ++this.live)
          await this.gate.wait()
          this.live--
        },
      })
  }

  /** Lets the runs end one by one, with time in between. */
  async drain(shared: Shared, turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      while (this.gate.waits() > 0) this.gate.open()
      await shared.advance(1_100)
    }
  }
}

describe.each(STORES)('L20 concurrency over two processes on %s', (store) => {
  test.each([1, 2, 3])('L20 concurrency %i counts over both processes', async (concurrency) => {
    const shared = await Shared.open(store)
    const watch = new Watch()
    const a = await shared.process('a', watch.declare('a', concurrency))
    const b = await shared.process('b', watch.declare('b', concurrency))
    const names = Array.from({ length: 12 }, (_, n) => `u${n}`)
    for (const [n, name] of names.entries()) await (n % 2 === 0 ? a : b).publish(ping(name))
    await shared.advance(2_000)
    expect(watch.live).toBe(concurrency)
    await watch.drain(shared, 14)
    expect(watch.most).toBe(concurrency)
    expect(watch.began.toSorted()).toEqual(names.toSorted())
    expect(watch.live).toBe(0)
  })

  test('L20 a process that stops returns its permits', async () => {
    const shared = await Shared.open(store)
    const watch = new Watch()
    const a = await shared.process('a', watch.declare('a', 1))
    await a.publish(ping('one'))
    await shared.advance(10)
    const b = await shared.process('b', watch.declare('b', 1))
    await b.publish(ping('two'))
    watch.gate.open()
    await shared.advance(10)
    await watch.drain(shared, 2)
    await shared.stop(a)
    await b.publish(ping('three'))
    await shared.advance(1_500)
    await watch.drain(shared, 2)
    expect(watch.began).toEqual(['one', 'two', 'three'])
  })

  // Regression: the first process took all permits, although it could use only one.
  test('L20 a process takes only as many permits as it can use', async () => {
    const shared = await Shared.open(store)
    const watch = new Watch()
    const a = await shared.process('a', watch.declare('a', 4), { maxConcurrentRuns: 1 })
    await a.publish(ping('one'))
    await shared.advance(10)
    const b = await shared.process('b', watch.declare('b', 4))
    await b.publish([ping('two'), ping('three'), ping('four'), ping('five')])
    await shared.advance(2_000)
    expect([watch.live, watch.most]).toEqual([4, 4])
    await watch.drain(shared, 4)
    expect([watch.live, watch.most]).toEqual([0, 4])
  })

  test('L20 an idle process holds no permit', async () => {
    const shared = await Shared.open(store)
    const watch = new Watch()
    const a = await shared.process('a', watch.declare('a', 1), { maxConcurrentRuns: 1 })
    await a.publish(ping('one'))
    await shared.advance(10)
    await watch.drain(shared, 1)
    // `a` is killed while none of its runs is live.
    const b = await shared.process('b', watch.declare('b', 1))
    await shared.stop(a)
    await b.publish(ping('two'))
    await shared.advance(1_500)
    expect(watch.began).toEqual(['one', 'two'])
    await watch.drain(shared, 1)
  })

  test('L1 a lane never runs in two processes at once', async () => {
    const shared = await Shared.open(store)
    const live = { now: 0, most: 0, runs: 0 }
    const gate = new Gate()
    const declare = (app: Sluice): unknown =>
      app.flow('f', {
        on: 'ping',
        key: () => 'one',
        run: async () => {
          live.runs++
          live.most = Math.max(live.most, ++live.now)
          await gate.wait()
          live.now--
        },
      })
    const a = await shared.process('a', declare)
    const b = await shared.process('b', declare)
    for (let n = 0; n < 20; n++) {
      await (n % 2 === 0 ? a : b).publish(ping('u', n))
      await shared.advance(500)
      if (gate.waits() > 0 && n % 3 === 0) gate.open()
    }
    while (gate.waits() > 0) {
      gate.open()
      await shared.advance(2_000)
    }
    expect(live.most).toBe(1)
    expect(live.runs).toBeGreaterThan(5)
  })
})

/** The same store, until calls with the given names get no more replies. */
function losable(store: Store, names: readonly string[], state: { away: boolean }): Store {
  return new Proxy(store, {
    get: (target, name): unknown =>
      state.away && names.includes(String(name))
        ? () => Promise.reject(new Error('away'))
        : (Reflect.get(target, name) as unknown),
  })
}

describe.each(STORES)('L1 a lost lease on %s', (store) => {
  test('L1 a run that cannot be renewed is aborted before another process may get its lane', async () => {
    const shared = await Shared.open(store)
    const state = { away: false }
    const log: [string, number][] = []
    const declare = (name: string) => (app: Sluice) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        timeout: '1h',
        run: async ({ signal }) => {
          log.push([`${name} began`, shared.clock.monotonic()])
          if (name === 'b') return
          await new Gate().waitFor('', signal).catch(() => {})
          log.push([`${name} aborted`, shared.clock.monotonic()])
        },
      })
    const lost: string[] = []
    const a = new Sluice({
      store: losable(shared.store, ['renew', 'settleAndClaim'], state),
      clock: shared.clock,
      process: 'a',
      log: false,
    })
    declare('a')(a)
    a.on('run.lost', ({ key }) => void lost.push(key))
    await a.start()
    await a.publish(ping('u'))
    await shared.advance(10)
    await shared.process('b', declare('b'))
    await shared.advance(25_000)
    state.away = true
    await shared.advance(60_000)
    expect(log.map(([what]) => what)).toEqual(['a began', 'a aborted', 'b began'])
    const [, aborted, began] = log.map(([, at]) => at)
    expect((began ?? 0) - (aborted ?? 0)).toBeGreaterThanOrEqual(2_000)
    expect(lost).toEqual(['u'])
    state.away = false
    await shared.stop(a)
  })
})

describe.each(STORES)('every over two processes on %s', (store) => {
  test('each tick runs once, regardless of the number of processes', async () => {
    const shared = await Shared.open(store)
    const ticks: number[] = []
    const declare = (app: Sluice): unknown =>
      app.every('sweep', '5m', ({ events }) => void ticks.push(Number(events[0]?.time)))
    const known: string[] = []
    for (const name of ['a', 'b']) {
      const app = await shared.process(name, declare)
      app.on('event.duplicate', () => known.push(name))
    }
    await shared.advance(30 * 60_000)
    const start = Date.UTC(2026, 0, 1)
    expect(ticks).toEqual([1, 2, 3, 4, 5, 6].map((n) => start + n * 300_000))
    // Both processes ticked, and the second publish of each tick was a duplicate.
    expect(known).toHaveLength(6)
  })
})

describe.each(STORES)('a flow that another process serves, on %s', (store) => {
  test('L18 where of a flow is known to every process, so only the events that it lets through are kept for the flow', async () => {
    const shared = await Shared.open(store)
    const totals: unknown[] = []
    await shared.process('server', (app) =>
      app.flow('big', {
        on: 'order.paid',
        where: { 'data.total': { gte: 100 } },
        run: ({ events }) => void totals.push(...events.map(({ data }) => (data as { total: number }).total)),
      }),
    )
    const publisher = await shared.process('publisher', (app) => app.flow('other', { on: 'ping', run: () => {} }))
    const unrouted: unknown[] = []
    publisher.on('event.unrouted', ({ flow }) => unrouted.push(flow))
    await publisher.publish([5, 200].map((total) => ({ type: 'order.paid', data: { total } })))
    await shared.advance(5_000)
    expect(unrouted).toEqual(['big'])
    expect(totals).toEqual([200])
  })
})
