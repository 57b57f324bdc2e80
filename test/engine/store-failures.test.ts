// A store that fails at one critical moment: at the first call, while the app starts, while a dead letter is looked up.
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { Gate, ping, Shared, START, STORES, userOf, type Declare } from './scene.ts'

/** Calls with the names in this list fail. */
interface Failing {
  names: readonly (keyof Store)[]
}

function failing(store: Store, state: Failing): Store {
  return new Proxy(store, {
    get: (target, name): unknown =>
      state.names.some((one) => one === name)
        ? () => Promise.reject(new Error('the disk is away'))
        : (Reflect.get(target, name) as unknown),
  })
}

function build(shared: Shared, state: Failing, declare: Declare): Sluice {
  const app = new Sluice({ log: false, store: failing(shared.store, state), clock: shared.clock })
  declare(app)
  onTestFinished(async () => {
    state.names = []
    await shared.stop(app)
  })
  return app
}

describe.each(STORES)('a store that fails at a critical moment on %s', (store) => {
  test('a failed commit throws in the handler, and the run is retried', async () => {
    const shared = await Shared.open(store)
    const state: Failing = { names: [] }
    const gate = new Gate()
    const app = build(shared, state, (one) =>
      one.flow('f', {
        on: 'ping',
        key: userOf,
        retry: ['1s'],
        run: async (run) => {
          await gate.wait()
          await run.commit()
        },
      }),
    )
    const ends: string[] = []
    app.on('run.retry', ({ error }) => void ends.push(error))
    app.on('run.done', () => void ends.push('done'))
    await app.start()
    await app.publish(ping('u'))
    await shared.advance(100)
    state.names = ['renew']
    gate.open()
    await shared.advance(100)
    state.names = []
    await shared.advance(2_000)
    gate.open()
    await shared.advance(100)
    expect(ends).toEqual(['Error: the disk is away', 'done'])
  })

  test('a limit that cannot be reserved rejects the call, and works again afterwards', async () => {
    const shared = await Shared.open(store)
    const state: Failing = { names: ['reserve'] }
    const app = build(shared, state, () => {})
    const limit = app.limit('api', { rate: 1, per: '1s' })
    await expect(limit.run(() => 1)).rejects.toThrow('the disk is away')
    state.names = []
    expect(await limit.run(() => 2)).toBe(2)
  })

  // Regression: the promise of a failed open was kept, and the app never worked again.
  test('an app whose first call of the store failed works once the store does', async () => {
    const shared = await Shared.open(store)
    const state: Failing = { names: ['readDocs'] }
    const app = build(shared, state, (one) => one.flow('f', { on: 'ping', run: () => {} }))
    await expect(app.publish(ping('u', 1))).rejects.toThrow('the disk is away')
    state.names = []
    expect(await app.publish(ping('u', 2))).toMatchObject([{ kind: 'stored' }])
  })

  // Regression: the app counted as started before its schedules had started, so a second start did nothing.
  test('a start that failed because of a schedule can be repeated', async () => {
    const shared = await Shared.open(store)
    const state = { away: true }
    const ofSchedules: Store = new Proxy(shared.store, {
      get: (target, name): unknown =>
        name === 'readDocs'
          ? (call: Parameters<Store['readDocs']>[0]) =>
              state.away && call.kind === 'every' ? Promise.reject(new Error('away')) : target.readDocs(call)
          : (Reflect.get(target, name) as unknown),
    })
    const app = new Sluice({ log: false, store: ofSchedules, clock: shared.clock })
    onTestFinished(() => shared.stop(app))
    const ticks: string[] = []
    app.every('sweep', '1m', ({ key }) => void ticks.push(key))
    await app.start().catch(() => {})
    state.away = false
    await app.start()
    await shared.advance(150_000)
    expect(ticks).toEqual(['sweep', 'sweep'])
  })

  // Regression: two simultaneous starts created two engines with one name. The second one received the leases of the first as
  // a repeated reply (L12).
  test('L1 two simultaneous starts are one', async () => {
    const shared = await Shared.open(store)
    let live = 0
    const gate = new Gate()
    const app = build(shared, { names: [] }, (one) =>
      one.flow('f', { on: 'ping', key: userOf, run: () => (live++, gate.wait()) }),
    )
    await app.publish(ping('u'))
    await Promise.all([app.start(), app.start()])
    await shared.advance(5_000)
    expect(live).toBe(1)
    while (gate.waits() > 0) gate.open()
    await shared.advance(100)
  })

  // Regression: a failed lookup of a crashed run was an unhandled rejection, which ended
  // the process.
  test('L12 a store that fails while a crashed run is looked up does not end the process', async () => {
    const shared = await Shared.open(store)
    const unhandled: unknown[] = []
    const hear = (error: unknown): void => void unhandled.push(error)
    const others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', hear)
    onTestFinished(() => {
      process.removeAllListeners('unhandledRejection')
      for (const other of others) process.on('unhandledRejection', other)
    })
    const app = build(shared, { names: ['get'] }, (one) =>
      one.flow('f', { on: 'ping', key: userOf, timeout: '9h', run: () => new Promise(() => {}) }),
    )
    await app.publish(ping('u'))
    for (const name of ['a', 'b', 'c', 'd']) {
      const one = await shared.process(
        name,
        (app1) => app1.flow('f', { on: 'ping', key: userOf, timeout: '9h', run: () => new Promise(() => {}) }),
        { shutdownTimeout: 0 },
      )
      await shared.advance(2_000)
      await shared.stop(one)
      await shared.advance(60_000)
    }
    await app.start()
    await shared.advance(60_000)
    expect((await shared.store.stats()).deadLetters).toBe(1)
    expect(unhandled).toEqual([])
  })

  // Regression: after a stall longer than a lease, the process claimed its own run before it knew that the lease was lost.
  test('L1 a lane is not started beside a handler of the same process that does not know yet that its lease has expired', async () => {
    // The store's time advances while no timer of the process fires.
    const storeClock = new VirtualClock(START)
    const opened = await openStore(store, { clock: storeClock })
    onTestFinished(() => opened.close())
    const shared = await Shared.open('memory:')
    const gate = new Gate()
    let atWork = 0
    let most = 0
    const app = new Sluice({ log: false, store: opened, clock: shared.clock, lease: '3s', heartbeat: '1s' })
    app.flow('f', {
      on: 'ping',
      key: userOf,
      run: async () => {
        most = Math.max(most, ++atWork)
        await gate.wait()
        atWork--
      },
    })
    app.flow('g', { on: 'pong', run: () => {} })
    onTestFinished(() => shared.stop(app))
    await app.start()
    await app.publish(ping('u'))
    await shared.advance(10)
    expect([atWork, gate.waits()]).toEqual([1, 1])
    storeClock.advance(4_000)
    await app.publish({ type: 'pong' })
    await shared.advance(10)
    await app.publish(ping('u', 2))
    await shared.advance(100)
    expect(most).toBe(1)
    gate.open()
    await shared.advance(10)
    expect([most, gate.waits()]).toEqual([1, 1])
    gate.open()
  })
})
