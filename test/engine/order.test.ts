// L5 and L5g: first ready, first served; with shares, tenants take turns.
import { describe, expect, test } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { Gate, keysOf, ping, play, sendNow, Shared, soon, STORES, userOf, type Declare } from './scene.ts'

describe.each(STORES)('L5 first ready, first served on %s', (store) => {
  test('L5 200 lanes with concurrency 1 run without an inversion', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        window: { quiet: '10s' },
        concurrency: 1,
        run: ({ key }) => (key === 'first' ? gate.wait() : undefined),
      }),
    )
    await t.send(ping('first'))
    await t.advance('10s')
    // The order of sending is unrelated to the names and their hashes, and a second event moves some lanes later.
    const sent: string[] = []
    for (let n = 0; n < 200; n++) {
      const name = `u${(n * 73) % 200}`
      await t.send(ping(name))
      sent.push(name)
      await t.advance(10)
    }
    const again = sent.filter((_, n) => n % 5 === 0)
    for (const name of again) await t.send(ping(name))
    await t.advance('20s')
    gate.open()
    await soon(t)
    const wanted = [...sent.filter((_, n) => n % 5 !== 0), ...again]
    expect(keysOf(t)).toEqual(['first', ...wanted])
  })

  test('L5 while a lane is ready, each other lane is served before it at most once', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        whileRunning: 'requeue',
        concurrency: 1,
        run: ({ key }) => gate.wait(key),
      }),
    )
    await sendNow(t, [ping('a'), ping('b'), ping('c')])
    const served: string[] = []
    for (let turn = 0; turn < 12; turn++) {
      const key = keysOf(t).at(-1) ?? ''
      served.push(key)
      // The lanes g0 … have a new event each time they run.
      if (key !== 'c') await t.send(ping(key))
      await t.advance('1s')
      gate.open(key)
      await soon(t)
      if (key === 'c') await sendNow(t, ping('c'))
    }
    expect(served.slice(0, 6)).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
    expect(served.slice(6)).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  })

  test('L5 flows of a process take turns', async () => {
    const t = await play(
      store,
      (app) => app.flow('one', { on: 'a', run: () => {} }).flow('two', { on: 'b', run: () => {} }),
      { maxConcurrentRuns: 1 },
    )
    await sendNow(t, [...Array.from({ length: 50 }, () => ({ type: 'a' })), { type: 'b' }])
    expect(t.runs).toHaveLength(51)
    expect(t.runs.findIndex((run) => run.flow === 'two')).toBeLessThanOrEqual(2)
  })

  test('L5 retries, lease expiries and windows share one order', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { every: '4s' }, retry: ['3s'], run: () => {} }),
    )
    t.fail('f', new Error('once'))
    await t.send(ping('failing'))
    await t.advance('2s')
    await t.send(ping('waiting'))
    await t.advance('60s')
    expect(t.runs.map(({ key, at }) => [key, at])).toEqual([
      ['failing', 4_000],
      ['waiting', 6_000],
      ['failing', 7_000],
    ])
  })
})

const of = (tenant: string) => Array.from({ length: 5 }, (_, n) => ({ ...ping(`${tenant}${n}`), tenant }))

describe.each(STORES)('L5g shares on %s', (store) => {
  test('L5g 2,000 lanes of one tenant delay the one lane of another by at most two rounds', async () => {
    const gate = new Gate()
    const t = await play(
      store,
      (app) =>
        app.flow('f', {
          on: 'ping',
          key: userOf,
          share: 'tenant',
          run: ({ key }) => (key === 'first' ? gate.wait() : undefined),
        }),
      { maxConcurrentRuns: 1 },
    )
    await sendNow(t, { ...ping('first'), tenant: 'big' })
    await t.send(Array.from({ length: 2_000 }, (_, n) => ({ ...ping(`big${n}`), tenant: 'big' })))
    await t.send({ ...ping('small'), tenant: 'small' })
    gate.open()
    await soon(t)
    expect(t.runs).toHaveLength(2_002)
    expect(keysOf(t).indexOf('small')).toBeLessThanOrEqual(2)
    expect(keysOf(t).filter((key) => key.startsWith('big'))).toEqual(Array.from({ length: 2_000 }, (_, n) => `big${n}`))
  })

  test('L5g concurrency applies to each tenant', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, share: 'tenant', concurrency: 2, run: () => gate.wait() }),
    )
    await sendNow(t, [...of('a'), ...of('b'), ping('none')])
    expect(keysOf(t).toSorted()).toEqual(['a0', 'a1', 'b0', 'b1', 'none'])
    gate.open()
    await soon(t)
    expect(keysOf(t)).toHaveLength(6)
  })

  test.each([
    { concurrency: undefined, live: 15 },
    { concurrency: 8, live: 8 },
  ])('L5g a tenant has $live runs over three processes of five with concurrency $concurrency', async (told) => {
    const { concurrency, live } = told
    const shared = await Shared.open(store)
    const runs = new Set<string>()
    const most = concurrency === undefined ? {} : { concurrency }
    const declare: Declare = (app) =>
      app.flow('f', {
        on: 'ping',
        key: userOf,
        share: 'tenant',
        ...most,
        run: ({ key, signal }) => {
          runs.add(key)
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
        },
      })
    const apps: Sluice[] = []
    for (const name of ['a', 'b', 'c']) apps.push(await shared.process(name, declare, { maxConcurrentRuns: 5 }))
    const events = Array.from({ length: 60 }, (_, n) => ({ ...ping(`user ${n}`), tenant: 'acme' }))
    await apps[0]?.publish(events)
    await shared.advance(5_000)
    expect(runs.size).toBe(live)
  })

  test('L5g with one group the order is that of L5', async () => {
    const gate = new Gate()
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, share: 'tenant', concurrency: 1, run: () => gate.wait() }),
    )
    for (const name of ['c', 'a', 'b']) await sendNow(t, { ...ping(name), tenant: 't' })
    for (let n = 0; n < 3; n++) {
      gate.open()
      await soon(t)
    }
    expect(keysOf(t)).toEqual(['c', 'a', 'b'])
  })
})
