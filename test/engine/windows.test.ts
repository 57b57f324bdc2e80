// L3 and L4 in an app: when a window ends, and that no lane loses its place.
import { describe, expect, test } from 'vitest'
import type { FlowOptions, Run, WindowOptions } from '../../src/index.ts'
import {
  Gate,
  numbersOf,
  ping,
  play,
  sendNow,
  Shared,
  SOON,
  soon,
  STORES,
  emittedEvents,
  userOf,
  type Declare,
} from './scene.ts'

function windowed(window: FlowOptions<Run>['window'], more: Partial<FlowOptions<Run>> = {}): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...(window && { window }), ...more, run: () => {} })
}

const slow = (tenant: string | undefined): { quiet: '30s' | '5s' } => ({ quiet: tenant === 'slow' ? '30s' : '5s' })

const max = (event: { data: unknown }): number => (event.data as { n: number }).n

describe.each(STORES)('L3 windows on %s', (store) => {
  test('L3 without a window, an event is due at once', async () => {
    const t = await play(store, windowed(undefined))
    await sendNow(t, ping('u', 1))
    expect(t.runs).toMatchObject([{ key: 'u', ending: 'done', attempt: 1 }])
  })

  test('L3 quiet is a true debounce: every event restarts it', async () => {
    const t = await play(store, windowed({ quiet: '10s', max: '60s' }))
    for (const n of [1, 2, 3]) {
      await t.send(ping('u', n))
      await t.advance('9s')
    }
    expect(t.runs).toEqual([])
    await t.advance('999ms')
    expect(t.runs).toEqual([])
    await t.advance('1ms')
    expect(t.runs).toMatchObject([{ at: 28_000, events: [{ n: 1 }, { n: 2 }, { n: 3 }] }])
  })

  test('L3 max bounds quiet: no event waits longer than its own max', async () => {
    const t = await play(store, windowed({ quiet: '10s', max: '25s' }))
    for (const n of [0, 1, 2, 3, 4]) {
      await t.send(ping('u', n))
      await t.advance('6s')
    }
    expect(t.runs).toMatchObject([{ at: 25_000, events: [{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }] }])
  })

  test('L3 quiet without max means max = 10 × quiet', async () => {
    const t = await play(store, windowed({ quiet: '1s' }))
    for (let n = 0; n < 21; n++) {
      await t.send(ping('u', n))
      await t.advance('500ms')
    }
    expect(t.runs[0]).toMatchObject({ at: 10_000 })
  })

  test('L3 max: Infinity makes the window unbounded', async () => {
    const t = await play(store, windowed({ quiet: '1s', max: Infinity }))
    for (let n = 0; n < 40; n++) {
      await t.send(ping('u', n))
      await t.advance('500ms')
    }
    expect(t.runs).toEqual([])
    await t.advance('500ms')
    expect(t.runs).toMatchObject([{ at: 20_500 }])
    expect(t.runs[0]?.events).toHaveLength(40)
  })

  test('L3 every: the window ends that long after the first event, whatever arrives', async () => {
    const t = await play(store, windowed({ every: '60s' }))
    await t.send(ping('u', 1))
    await t.advance('59s')
    await t.send(ping('u', 2))
    await t.advance('1s')
    expect(t.runs).toMatchObject([{ at: 60_000, events: [{ n: 1 }, { n: 2 }] }])
    await t.advance('1s')
    await t.send(ping('u', 3))
    await t.advance('60s')
    expect(t.runs[1]).toMatchObject({ at: 121_000, events: [{ n: 3 }] })
  })

  test('L3 when maxEvents is reached, the lane is due at once', async () => {
    const t = await play(store, windowed({ quiet: '10s', maxEvents: 3 }))
    await t.send([ping('u', 1), ping('u', 2)])
    expect(t.runs).toEqual([])
    await sendNow(t, ping('u', 3))
    expect(t.runs).toMatchObject([{ events: [{ n: 1 }, { n: 2 }, { n: 3 }] }])
  })

  test('L3 when maxBytes is reached, the lane is due at once', async () => {
    const t = await play(store, windowed({ quiet: '10s', maxBytes: 300 }))
    const big = { type: 'ping', data: { user: 'u', pad: 'x'.repeat(200) } }
    await t.send(big)
    expect(t.runs).toEqual([])
    await sendNow(t, big)
    // A run does not take more than maxBytes either: the second event remains, and is due when the first run ends (L7).
    expect(t.runs.map((run) => run.events.length)).toEqual([1, 1])
  })

  test('L3 leading: the first event runs at once, later ones after quiet', async () => {
    const t = await play(store, windowed({ quiet: '10s', leading: true }))
    await sendNow(t, ping('u', 1))
    expect(t.runs).toHaveLength(1)
    await t.advance('3s')
    await t.send(ping('u', 2))
    await t.advance('5s')
    await t.send(ping('u', 3))
    await t.advance('9999ms')
    expect(t.runs).toHaveLength(1)
    await t.advance('1ms')
    expect(t.runs[1]).toMatchObject({ at: 18_000 + SOON, events: [{ n: 2 }, { n: 3 }] })
    await t.advance('10s')
    await sendNow(t, ping('u', 4))
    expect(t.runs[2]).toMatchObject({ events: [{ n: 4 }] })
  })

  test('L3 leading: an event within quiet of the last run is not due at once', async () => {
    const t = await play(store, windowed({ quiet: '10s', leading: true }))
    await sendNow(t, ping('u', 1))
    await t.advance('9990ms')
    await sendNow(t, ping('u', 2))
    expect(t.runs).toHaveLength(1)
    await t.advance('10s')
    expect(t.runs[1]).toMatchObject({ at: 19_990 + SOON })
  })

  test('L3 without a window, an event runs without any time passing', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))
    await t.send(ping('u'))
    expect(t.runs).toHaveLength(1)
  })

  test('L3 leading works with a window function too', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: () => ({ quiet: '10s', leading: true }), run: () => {} }),
    )
    await sendNow(t, ping('u', 1))
    await t.advance('1s')
    await sendNow(t, ping('u', 2))
    expect(numbersOf(t)).toEqual([[1]])
  })

  test('L3 a window may be a function of the event, so that tenants differ', async () => {
    const t = await play(
      store,
      windowed((event) => slow(event.tenant)),
    )
    await t.send([
      { ...ping('a'), tenant: 'slow' },
      { ...ping('b'), tenant: 'fast' },
    ])
    await t.advance('60s')
    expect(t.runs).toMatchObject([
      { key: 'b', at: 5_000 },
      { key: 'a', at: 30_000 },
    ])
  })

  test('L3 the caps of a flow hold when its window is a function', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: () => ({ quiet: '10s' }), maxEvents: 2, run: () => {} }),
    )
    await t.send([ping('a', 1), ping('b', 1), ping('b', 2), ping('b', 3)])
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 2], [3]])
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1, 2], [3], [1]])
  })

  test('L3 the caps of a flow in bytes hold when its window is a function', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: () => ({ every: '10s' }), maxBytes: 40, run: () => {} }),
    )
    await t.send([ping('a', 1), ping('a', 2)])
    expect(t.runs).toEqual([])
    await t.send(ping('a', 3))
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 2], [3]])
  })

  test('L3 the caps of a flow belong to any window', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, debounce: '10s', maxEvents: 2, run: () => {} }),
    )
    await t.send([ping('a', 1), ping('a', 2)])
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 2]])
  })

  test.each<[string, WindowOptions]>([
    ['maxEvents', { quiet: '50ms', maxEvents: 10 }],
    ['maxBytes', { quiet: '50ms', maxBytes: 10 }],
    ['range', { quiet: { from: '1s', to: '10s' }, max: '1m' }],
    ['jitter', { every: '1s', jitter: 0.5 }],
  ])('L3 what a function cannot say of one event is not ignored: %s', async (named, options) => {
    const t = await play(store, windowed((() => options) as FlowOptions<Run>['window']))
    await t.send(ping('u', 1))
    await t.advance('1m')
    expect(t.runs).toEqual([])
    const [unrouted] = emittedEvents(t, 'event.unrouted')
    expect(unrouted).toMatchObject({ flow: 'f', reason: 'key-failed' })
    expect(unrouted?.error).toContain(named)
  })

  test('L3 a window function cannot return leading for events without a key', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', window: () => ({ quiet: '1s', leading: true }), run: () => {} }),
    )
    await t.send(ping('u', 1))
    expect(emittedEvents(t, 'event.unrouted')[0]?.error).toContain('leading')
  })

  test('L3 the smallest max of all waiting events counts, whatever windows the others have', async () => {
    const t = await play(
      store,
      windowed((event) => ({ quiet: '50s', max: max(event) * 1_000 })),
    )
    await t.send(ping('u', 100))
    await t.advance('1s')
    await t.send(ping('u', 60))
    await t.advance('1s')
    await t.send(ping('u', 500))
    await t.advance('600s')
    expect(t.runs).toMatchObject([{ at: 52_000 }])
    await t.send(ping('u', 10))
    await t.advance('1s')
    await t.send(ping('u', 500))
    await t.advance('600s')
    expect(t.runs[1]).toMatchObject({ at: 602_000 + 10_000 })
  })

  test('L3 jitter varies quiet within its bounds, and never beyond max', async () => {
    const t = await play(store, windowed({ quiet: '10s', max: '11s', jitter: 0.5 }))
    await t.send(Array.from({ length: 100 }, (_, n) => ping(`u${n}`)))
    await t.advance('60s')
    const at = t.runs.map((run) => run.at)
    expect(at).toHaveLength(100)
    expect(Math.min(...at)).toBeGreaterThanOrEqual(5_000)
    expect(Math.min(...at)).toBeLessThan(7_000)
    expect(Math.max(...at)).toBe(11_000)
    expect(new Set(at).size).toBeGreaterThan(20)
  })

  test('L3 each lane has its own window', async () => {
    const t = await play(store, windowed({ quiet: '10s' }))
    await t.send(ping('a'))
    await t.advance('5s')
    await t.send(ping('b'))
    await t.advance('60s')
    expect(t.runs).toMatchObject([
      { key: 'a', at: 10_000 },
      { key: 'b', at: 15_000 },
    ])
  })
})

describe.each(STORES)('L3 maxLanesPerTenant on %s', (store) => {
  test('L3 above it, the oldest windows of that tenant are due at once, within a second', async () => {
    const shared = await Shared.open(store)
    const ran: string[] = []
    const app = await shared.process('a', (one) =>
      one.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '1m' },
        maxLanesPerTenant: 2,
        run: ({ key }) => void ran.push(key),
      }),
    )
    for (const name of ['a', 'b', 'c', 'd']) {
      await app.publish({ ...ping(name), tenant: 'x' })
      await app.publish({ ...ping(`other-${name}`), tenant: name })
      await shared.advance(10)
    }
    await shared.advance(1_500)
    expect(ran.toSorted()).toEqual(['a', 'b'])
  })
})

describe.each(STORES)('L4 a lane keeps its place on %s', (store) => {
  test('L4 a passed deadline does not move; an arriving event joins the batch', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '10s', max: '5m' },
        concurrency: 1,
        run: ({ key }) => gate.wait(key),
      }),
    )
    await t.send([ping('first'), ping('a', 1)])
    await t.advance('5s')
    await t.send(ping('b', 1))
    await t.advance('15s')
    // `a` and `b` are ready. A stream of events for `a` must not move it behind `b`, or into a later window.
    await t.send(ping('a', 2))
    await t.advance('1s')
    gate.open('first')
    await soon(t)
    expect(t.runs).toMatchObject([{ key: 'first', at: 10_000 }, { key: 'a' }])
    expect(numbersOf(t)[1]).toEqual([1, 2])
    gate.open('a')
    await soon(t)
    expect(t.runs[2]).toMatchObject({ key: 'b' })
  })
})
