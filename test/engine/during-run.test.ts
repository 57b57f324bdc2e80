// L6 and L7: what happens to events that arrive while their lane runs, and how many events a run takes.
import assert from 'node:assert'
import { describe, expect, test } from 'vitest'
import type { FlowEvent, FlowOptions, Run } from '../../src/index.ts'
import {
  Gate,
  keysOf,
  numbersOf,
  ping,
  play,
  sendNow,
  soon,
  STORES,
  emittedEvents,
  userOf,
  type Declare,
} from './scene.ts'

function gated(gate: Gate, options: Partial<FlowOptions<Run>>): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, ...options, run: ({ key }) => gate.wait(key) })
}

function requeueIfFast({ tenant }: FlowEvent): 'requeue' | 'window' {
  return tenant === 'fast' ? 'requeue' : 'window'
}

function from(tenant: string, n: number): ReturnType<typeof ping> & { readonly tenant: string } {
  return { ...ping(tenant, n), tenant }
}

describe.each(STORES)('L6 events during a run on %s', (store) => {
  test("L6 with 'window', events during a run have a window of their own, from their own arrival", async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { quiet: '10s' } }))
    await t.send(ping('u', 1))
    await t.advance('10s')
    await t.send(ping('u', 2))
    await t.advance('4s')
    gate.open('u')
    await t.advance('5999ms')
    expect(t.runs).toHaveLength(1)
    await t.advance('1ms')
    expect(t.runs[1]).toMatchObject({ at: 20_000, events: [{ n: 2 }] })
  })

  test("L6 with 'window', a window that ended during the run is due at the end of the run, and its events join nothing", async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { quiet: '10s' } }))
    await t.send(ping('u', 1))
    await t.advance('10s')
    await t.send(ping('u', 2))
    await t.advance('30s')
    expect(t.runs).toHaveLength(1)
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [2]])
  })

  test("L6 with 'requeue', events are due at the end of the run, regardless of their window", async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { quiet: '10s' }, whileRunning: 'requeue' }))
    await t.send(ping('u', 1))
    await t.advance('10s')
    await t.send([ping('u', 2), ping('u', 3)])
    await t.advance('1s')
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [2, 3]])
  })

  test('L6 whileRunning per event: the last event of the run decides what those behind it wait for', async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { quiet: '10s' }, whileRunning: requeueIfFast }))
    await t.send([from('fast', 1), from('slow', 1)])
    await t.advance('10s')
    await t.send([from('fast', 2), from('slow', 2)])
    await t.advance('1s')
    gate.open('fast')
    gate.open('slow')
    await soon(t)
    expect(keysOf(t)).toEqual(['fast', 'slow', 'fast'])
    await t.advance('9s')
    expect(keysOf(t)).toEqual(['fast', 'slow', 'fast', 'slow'])
  })

  test.each<[string, unknown]>([
    ['throws', () => assert.fail('no settings')],
    ['returns another value', () => 'later'],
    ['returns a promise', async () => 'window'],
  ])('L2a whileRunning that %s makes the event unrouted', async (_how, whileRunning) => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, whileRunning: whileRunning as never, run: () => {} }),
    )
    await t.send(ping('u'))
    await t.advance('1m')
    expect(t.runs).toEqual([])
    expect(emittedEvents(t, 'event.unrouted')).toMatchObject([{ flow: 'f', reason: 'key-failed' }])
  })

  test("L6 with 'requeue', lanes that were ready before are served first", async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { whileRunning: 'requeue', concurrency: 1 }))
    await sendNow(t, [ping('a', 1), ping('b', 1), ping('c', 1)])
    await sendNow(t, ping('a', 2))
    for (const key of ['a', 'b', 'c', 'a']) {
      gate.open(key)
      await soon(t)
    }
    expect(keysOf(t)).toEqual(['a', 'b', 'c', 'a'])
  })

  test('L6 retry delays are part of the run: no event joins, and the window is kept', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, retry: ['60s'], run: () => {} }),
    )
    t.fail('f', new Error('once'))
    await t.send(ping('u', 1))
    await t.advance('10s')
    await t.advance('5s')
    await t.send(ping('u', 2))
    await t.advance('55s')
    expect(t.runs.map(({ at, attempt }) => [at, attempt])).toEqual([
      [10_000, 1],
      [70_000, 2],
      [70_000, 1],
    ])
    expect(numbersOf(t)).toEqual([[1], [1], [2]])
  })

  test('L1 a lane never runs twice at once, regardless of the free slots', async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, {}))
    for (let n = 0; n < 10; n++) await sendNow(t, ping('u', n))
    expect(gate.waits('u')).toBe(1)
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[0], [1, 2, 3, 4, 5, 6, 7, 8, 9]])
    expect(gate.waits('u')).toBe(1)
  })
})

describe.each(STORES)('L7 what a run takes on %s', (store) => {
  test('L7 a run takes at most maxEvents, in order; the remaining events are due at its end', async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { quiet: '10s', max: '5m', maxEvents: 4 } }))
    await t.send(ping('u', 0))
    await t.advance('10s')
    await t.send(Array.from({ length: 10 }, (_, n) => ping('u', n + 1)))
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[0], [1, 2, 3, 4]])
    gate.open('u')
    await soon(t)
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[0], [1, 2, 3, 4], [5, 6, 7, 8], [9, 10]])
  })

  test('L7 remaining events are served after lanes that are ready', async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, { window: { every: '10s', maxEvents: 2 }, concurrency: 1 }))
    await t.send([ping('a', 1), ping('a', 2), ping('a', 3)])
    await soon(t)
    await t.send([ping('b', 1), ping('b', 2)])
    await soon(t)
    gate.open('a')
    await soon(t)
    gate.open('b')
    await soon(t)
    expect(keysOf(t)).toEqual(['a', 'b', 'a'])
    expect(numbersOf(t)).toEqual([[1, 2], [1, 2], [3]])
  })

  test('L7 an event above maxBytes runs alone', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1s', maxBytes: 100 }, run: () => {} }),
    )
    const big = { type: 'ping', data: { user: 'u', n: 2, pad: 'x'.repeat(500) } }
    await t.send([ping('u', 1), big, ping('u', 3)])
    await t.advance('5s')
    expect(numbersOf(t)).toEqual([[1], [2], [3]])
  })

  test('L7 take last takes the last of all waiting events, and the others are superseded', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1s' }, take: 'last', run: () => {} }),
    )
    const [first] = await t.send([ping('u', 1), ping('u', 2), ping('u', 3)])
    await t.advance('1s')
    expect(numbersOf(t)).toEqual([[3]])
    await t.advance('60s')
    expect(t.runs).toHaveLength(1)
    expect(first?.kind).toBe('stored')
    await t.send(ping('u', 4))
    await t.advance('1s')
    expect(numbersOf(t)).toEqual([[3], [4]])
  })

  test('L7 take first applies before the caps', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '1s', maxEvents: 3 }, take: 'first', run: () => {} }),
    )
    await t.send([ping('u', 1), ping('u', 2), ping('u', 3), ping('u', 4), ping('u', 5)])
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1]])
  })

  test('L7 settling removes exactly the events of the run', async () => {
    const gate = new Gate()
    const t = await play(store, gated(gate, {}))
    await sendNow(t, ping('u', 1))
    for (let n = 2; n < 6; n++) await sendNow(t, ping('u', n))
    gate.open('u')
    await soon(t)
    gate.open('u')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [2, 3, 4, 5]])
    expect(await t.app.admin.lanes.get('f', 'u')).toBeUndefined()
  })
})
