// L16 through the API of an app: a replay is counted first, then runs stored events again behind live events, at its own rate.
import { describe, expect, test } from 'vitest'
import type { Run } from '../../src/index.ts'
import { ran, shown, simple } from './replay-scene.ts'
import { Gate, ping, play, sendNow, soon, START, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

const windowed: Declare = (app) =>
  app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1m' }, retry: [], run: () => {} })

describe.each(STORES)('L16 replay on %s', (store) => {
  test('L16 events run again under their own ids, in order, without their window', async () => {
    const t = await play(store, windowed)
    await t.send([ping('a', 1), ping('a', 2), ping('b', 3)])
    await t.advance('2m')
    expect(ran(t)).toEqual([[1, 2], [3]])
    expect(await t.app.admin.replays.count({ type: 'ping' })).toBe(3)
    const { id } = await t.app.admin.replays.start({ type: 'ping' })
    await soon(t)
    expect(ran(t).slice(2)).toEqual([[1, 2], [3]])
    expect(await shown(t, id)).toMatchObject({ state: 'done', found: 3, scanned: 3, placed: 3, skipped: 0 })
    expect(emittedEvents(t, 'event.duplicate')).toEqual([])
    expect(emittedEvents(t, 'replay.started')).toEqual([{ replay: id, found: 3 }])
    expect(emittedEvents(t, 'replay.done')).toEqual([{ replay: id, placed: 3 }])
  })

  test('L16 the events of one subject run again, and no others', async () => {
    const t = await play(store, simple)
    await t.send([
      { ...ping('a', 1), subject: 'ada' },
      { ...ping('a', 2), subject: 'bob' },
      { ...ping('b', 3), subject: 'ada' },
    ])
    await soon(t)
    const before = ran(t).length
    const { id } = await t.app.admin.replays.start({ subject: 'ada' })
    await soon(t)
    expect(new Set(ran(t).slice(before).flat())).toEqual(new Set([1, 3]))
    expect(await shown(t, id)).toMatchObject({ state: 'done', found: 2, placed: 2, filter: { subject: 'ada' } })
  })

  test('L16 the replayed event has the id, type and time of the original', async () => {
    const events: unknown[] = []
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        run: (run) => void events.push(run.events.map((one) => [one.id, one.type, one.time])),
      }),
    )
    await sendNow(t, ping('a', 1))
    await t.advance('1h')
    await t.app.admin.replays.start({})
    await soon(t)
    expect(events).toHaveLength(2)
    expect(events[1]).toEqual(events[0])
  })

  test('L16 live events go first; every ninth run of the lane is a replay', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { maxEvents: 1 }, run: (run) => void run.events }),
    )
    await sendNow(t, ping('a', 0))
    await t.app.admin.flows.pause('f', { reason: 'test', by: 'me' })
    await t.app.admin.replays.start({})
    await soon(t)
    await t.send(Array.from({ length: 12 }, (_, n) => ping('a', n + 1)))
    await t.app.admin.flows.resume('f')
    await t.advance('1m')
    expect(ran(t).flat()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11, 12])
  })

  test('L16 the same id is the same replay, even after its end; another filter under this id is rejected', async () => {
    const t = await play(store, simple)
    await sendNow(t, ping('a', 1))
    const first = await t.app.admin.replays.start({ type: 'ping' }, { id: 'r1' })
    await soon(t)
    const second = await t.app.admin.replays.start({ type: 'ping' }, { id: 'r1' })
    await soon(t)
    expect([first.state, second.state]).toEqual(['running', 'done'])
    expect(ran(t)).toEqual([[1], [1]])
    await expect(t.app.admin.replays.start({ type: 'pong' }, { id: 'r1' })).rejects.toThrow('another filter')
    await t.app.admin.replays.start({ type: 'ping' }, { id: 'r2' })
    await soon(t)
    expect(ran(t)).toEqual([[1], [1], [1]])
  })

  test('L16 two simultaneous starts of the same replay start one', async () => {
    const t = await play(store, simple)
    await sendNow(t, ping('a', 1))
    await Promise.all([1, 2, 3].map(() => t.app.admin.replays.start({}, { id: 'r' })))
    await t.advance('1m')
    expect(ran(t)).toEqual([[1], [1]])
    expect(emittedEvents(t, 'replay.started')).toHaveLength(1)
  })

  test('L16 of two simultaneous starts of different replays under one id, one is rejected', async () => {
    const t = await play(store, simple)
    const both = [{ type: 'ping' }, { type: 'pong' }].map((filter) => t.app.admin.replays.start(filter, { id: 'r' }))
    expect((await Promise.allSettled(both)).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  test('L16 a replay has a limit of its own', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', retry: [], run: () => {} }))
    await sendNow(
      t,
      Array.from({ length: 30 }, (_, n) => ping('a', n)),
    )
    const before = t.elapsed
    await t.app.admin.replays.start({}, { rate: 5, per: '1s' })
    await t.advance('1m')
    const moments = t.runs
      .filter((run) => run.flow === 'f')
      .slice(30)
      .map((run) => run.at - before)
    expect(moments).toHaveLength(30)
    for (const at of moments)
      expect(moments.filter((one) => one >= at && one < at + 1_000).length).toBeLessThanOrEqual(5)
    expect(Math.max(...moments)).toBeGreaterThanOrEqual(5_000)
    expect(Math.max(...moments)).toBeLessThan(7_000)
  })

  test('L16 a slow replay holds neither a slot nor a lease between its pages', async () => {
    const t = await play(store, simple)
    await sendNow(t, [ping('a', 1), ping('b', 2), ping('c', 3)])
    await t.app.admin.replays.start({}, { id: 'slow', rate: 1, per: '1h' })
    await t.advance('90m')
    expect(ran(t).slice(3)).toEqual([[1], [2]])
    expect(await shown(t, 'slow')).toMatchObject({ state: 'running', found: 3, placed: 2 })
    expect((await t.explain('sluice.replay', 'slow')).text).toContain('limit')
    await t.advance('1h')
    expect(ran(t).slice(3)).toEqual([[1], [2], [3]])
    expect(await shown(t, 'slow')).toMatchObject({ state: 'done', placed: 3 })
  })

  test('L16 after a cancel nothing more is placed, placed events run, and a second cancel changes nothing', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', retry: [], run: () => {} }))
    await sendNow(
      t,
      Array.from({ length: 20 }, (_, n) => ping('a', n)),
    )
    await t.app.admin.replays.start({}, { id: 'r', rate: 4, per: '1s' })
    await t.advance('1500ms')
    expect(await t.app.admin.replays.cancel('r')).toBe('ok')
    await t.advance('1h')
    expect(ran(t).slice(20).flat()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(await shown(t, 'r')).toMatchObject({ state: 'cancelled', placed: 8, ended: START + 1_504 })
    expect(await t.app.admin.replays.cancel('r')).toBe('already')
    expect(await t.app.admin.replays.cancel('nobody')).toBe('missing')
    expect(emittedEvents(t, 'replay.cancelled')).toEqual([{ replay: 'r', placed: 8 }])
  })

  test('L16 by source, type, tenant, time, lane or one event', async () => {
    const t = await play(store, simple)
    await sendNow(t, [
      { ...ping('a', 1), source: 'shop' },
      { ...ping('a', 2), source: 'bank', tenant: 'acme' },
    ])
    await t.advance('1h')
    const [first] = await sendNow(t, [ping('b', 3), ping('a', 4)])
    const cases: [Parameters<typeof t.app.admin.replays.start>[0], readonly number[]][] = [
      [{ source: 'shop' }, [1]],
      [{ tenant: 'acme' }, [2]],
      [{ from: START + 60_000 }, [3, 4]],
      [{ to: new Date(START + 60_000) }, [1, 2]],
      [{ flow: 'f', key: 'b' }, [3]],
      [{ event: first?.id ?? '' }, [3]],
      [{ type: 'pong' }, []],
      [{ source: 'shop', tenant: 'acme' }, []],
    ]
    for (const [filter, numbers] of cases) {
      const before = ran(t).length
      expect([filter, await t.app.admin.replays.count(filter)]).toEqual([filter, numbers.length])
      await t.app.admin.replays.start(filter)
      await soon(t)
      expect([
        filter,
        ran(t)
          .slice(before)
          .flat()
          .toSorted((one, other) => Number(one) - Number(other)),
      ]).toEqual([filter, numbers])
    }
  })

  test('L16 only into the given flows, and only where a flow takes the event', async () => {
    const t = await play(store, (app) => {
      app.flow('f', { on: 'ping', key: userOf, run: () => {} })
      app.flow('g', { on: 'ping', key: userOf, run: () => {} })
      app.flow('h', { on: 'pong', key: userOf, run: () => {} })
    })
    await sendNow(t, ping('a', 1))
    await t.app.admin.replays.start({}, { id: 'one', into: 'g' })
    await t.app.admin.replays.start({}, { id: 'two', into: ['f', 'h'] })
    await t.app.admin.replays.start({}, { id: 'none', into: 'h' })
    await soon(t)
    expect([ran(t, 'f'), ran(t, 'g'), ran(t, 'h')]).toEqual([[[1], [1]], [[1], [1]], []])
    expect(await shown(t, 'none')).toMatchObject({ state: 'done', scanned: 1, placed: 0, skipped: 1 })
  })

  test('L16 internal events are not replayed', async () => {
    const t = await play(store, (app) => app.flow('f', { on: '**', run: () => {} }).every('tick', '1m', () => {}))
    await t.send(ping('a', 1), { at: START + 1_000 })
    await t.advance('5m')
    await t.app.admin.replays.start({}, { id: 'r' })
    await soon(t)
    expect(ran(t)).toEqual([[1], [1]])
    expect(await shown(t, 'r')).toMatchObject({ state: 'done', placed: 1 })
  })

  test('L16 events that arrive after the start are not replayed', async () => {
    const t = await play(store, simple)
    await sendNow(t, [ping('a', 1), ping('a', 2)])
    await t.app.admin.replays.start({}, { id: 'r', rate: 1, per: '10s' })
    await t.advance('5s')
    await sendNow(t, ping('a', 3))
    await t.advance('1m')
    expect(ran(t).flat()).toEqual([1, 2, 1, 3, 2])
  })

  test('L16 a run of replays that fails is retried and dies like any other', async () => {
    let healthy = true
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        retry: ['1s'],
        run: () => {
          if (!healthy) throw new Error('down')
        },
      }),
    )
    await sendNow(t, ping('a', 1))
    healthy = false
    await t.app.admin.replays.start({})
    await t.advance('1m')
    expect((await t.app.admin.deadLetters.list()).items).toMatchObject([{ flow: 'f', key: 'a', tries: 2 }])
  })

  test('L16 a replay never runs beside the live run of its lane', async () => {
    const gate = new Gate()
    let live = 0
    let most = 0
    const run = async (_one: Run): Promise<void> => {
      most = Math.max(most, ++live)
      await gate.wait()
      live--
    }
    const t = await play(store, (app) => app.flow('f', { on: 'ping', key: userOf, run }))
    await sendNow(t, ping('a', 1))
    await t.app.admin.replays.start({})
    await soon(t)
    expect(gate.waits()).toBe(1)
    gate.open()
    await soon(t)
    expect(gate.waits()).toBe(1)
    gate.open()
    await soon(t)
    expect([ran(t), most]).toEqual([[[1], [1]], 1])
  })

  test('L16 a replay of many pages places all events, and the list shows the newest replay first', async () => {
    const t = await play(store, (app) => app.flow('f', { on: 'ping', key: userOf, retry: [], run: () => {} }))
    await sendNow(
      t,
      Array.from({ length: 450 }, (_, n) => ping('a', n)),
    )
    await t.app.admin.replays.start({}, { id: 'first', rate: 1_000 })
    await t.advance('10s')
    await t.app.admin.replays.start({ type: 'none' }, { id: 'second' })
    await t.advance('10s')
    expect(ran(t).slice(1).flat()).toEqual(Array.from({ length: 450 }, (_, n) => n))
    expect((await t.app.admin.replays.list()).map(({ id, state, placed }) => [id, state, placed])).toEqual([
      ['second', 'done', 0],
      ['first', 'done', 450],
    ])
  })

  test.each([
    [undefined, {}, 'the filter must be an object'],
    ['ping', {}, 'the filter must be an object'],
    [{ typ: 'ping' }, {}, 'typ'],
    [{ type: 3 }, {}, 'type must be a string'],
    [{ flow: 'f' }, {}, 'flow and key must be used together'],
    [{ event: 'x', type: 'ping' }, {}, 'event must be the only filter'],
    [{ from: Number.NaN }, {}, 'from must be a Date'],
    [{}, { rate: 0 }, 'rate must be a whole number of at least 1; got 0'],
    [{}, { rate: 1.5 }, 'got 1.5'],
    [{}, { per: 'soon' }, 'per'],
    [{}, { per: '1ms' }, 'per'],
    [{}, { id: '' }, 'id must be a string'],
    [{}, { into: 'nobody' }, 'into must name flows of this app; got "nobody"'],
    [{}, { into: 'sluice.delayed' }, 'into must name flows'],
    [{}, { into: [] }, 'into must name at least one flow'],
    [{}, { speed: 3 }, 'speed'],
  ])('bad input %j %j is refused before anything is stored', async (filter, options, message) => {
    const t = await play(store, simple)
    await sendNow(t, ping('a', 1))
    await expect(t.app.admin.replays.start(filter as never, options as never)).rejects.toThrow(message)
    await t.advance('1m')
    expect(ran(t)).toEqual([[1]])
    expect(await t.app.admin.replays.list()).toEqual([])
  })
})
