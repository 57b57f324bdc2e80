// L11 and L2: what counts as a key, and events in many lanes.
import { describe, expect, test } from 'vitest'
import { keysOf, play, sendNow, soon, STORES, emittedEvents, type Declare } from './scene.ts'

/** The data of the event is what the key function returns. */
const flow: Declare = (app) =>
  app.flow('f', { on: 'k', key: (event) => (event.data as { key?: string | string[] }).key, run: () => {} })

function keyed(key: unknown): { readonly type: string; readonly data: unknown } {
  return { type: 'k', data: { key } }
}

describe.each(STORES)('L11 keys on %s', (store) => {
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['[]', []],
    ['[null]', [null]],
  ])('L11 %s is no key: skipped, counted, never an error', async (_name, key) => {
    const t = await play(store, flow)
    expect(await sendNow(t, keyed(key))).toMatchObject([{ kind: 'stored' }])
    expect(t.runs).toEqual([])
    expect(emittedEvents(t, 'event.skipped')).toMatchObject([{ flow: 'f', type: 'k' }])
    expect(emittedEvents(t, 'event.unrouted')).toEqual([])
    expect((await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items).toEqual([])
  })

  test('L11 the empty string is a key', async () => {
    const t = await play(store, flow)
    await sendNow(t, keyed(''))
    expect(t.runs).toMatchObject([{ key: '', ending: 'done' }])
    expect(emittedEvents(t, 'event.skipped')).toEqual([])
  })

  test('L11 an event with several keys has a placement in each lane, and each ends on its own', async () => {
    const t = await play(store, flow)
    t.fail('f', new Error('once'))
    await sendNow(t, keyed(['a', 'b', 'c']))
    expect(keysOf(t).toSorted()).toEqual(['a', 'b', 'c'])
    expect(t.runs.map((run) => run.ending).toSorted()).toEqual(['done', 'done', 'retry'])
    await t.advance('2s')
    expect(t.runs).toHaveLength(4)
  })

  test('L11 the same key twice is one placement', async () => {
    const t = await play(store, flow)
    await sendNow(t, keyed(['a', 'a', 'b', 'a']))
    expect(keysOf(t).toSorted()).toEqual(['a', 'b'])
    expect(t.runs.map((run) => run.events.length)).toEqual([1, 1])
  })

  test('L11 empty entries of a list of keys are ignored', async () => {
    const t = await play(store, flow)
    await sendNow(t, keyed(['a', null, 'b']))
    expect(keysOf(t).toSorted()).toEqual(['a', 'b'])
  })

  test('L11 a key may contain NUL and any well-formed text', async () => {
    const t = await play(store, flow)
    const keys = ['a\u0000b', 'ключ', '🙂', ' ', '__proto__', 'x'.repeat(16_000)]
    await sendNow(t, keyed(keys))
    expect(keysOf(t).toSorted()).toEqual(keys.toSorted())
  })

  test.each([
    ['a number', 5],
    ['an object', { id: 5 }],
    ['a text above 16 KB', 'x'.repeat(17_000)],
    ['a boolean', true],
    ['a list with a number', ['a', 5]],
  ])('L11 %s is no key but a fault: marked key-failed, the sender gets its stored', async (_name, key) => {
    const t = await play(store, flow)
    expect(await sendNow(t, keyed(key))).toMatchObject([{ kind: 'stored' }])
    expect(t.runs).toEqual([])
    expect(emittedEvents(t, 'event.unrouted')).toMatchObject([{ flow: 'f', reason: 'key-failed' }])
    const { items } = await t.app.admin.deadLetters.list({ kind: 'unrouted' })
    expect(items).toMatchObject([{ kind: 'unrouted', flow: 'f', reason: 'key-failed' }])
  })

  test('L11 without a key function, every event has a lane of its own, by its id', async () => {
    const t = await play(store, (app) => app.flow('own', { on: 'k', run: () => {} }))
    const published = await sendNow(t, [keyed(1), keyed(2), keyed(3)])
    expect(keysOf(t).toSorted()).toEqual(published.map((one) => one.id).toSorted())
  })

  test('L11 an event that two flows take has a placement in both', async () => {
    const t = await play(store, (app) => {
      flow(app)
      app.flow('g', { on: '**', run: () => {} }).flow('h', { on: ['nothing', 'app/other'], run: () => {} })
    })
    await sendNow(t, keyed('a'))
    expect(t.runs.map((run) => run.flow).toSorted()).toEqual(['f', 'g'])
  })

  test('L2 an event with over 100 lanes is unrouted as fan-out, and placed soon', async () => {
    const t = await play(store, flow)
    const keys = Array.from({ length: 150 }, (_, n) => `k${n}`)
    expect(await t.send(keyed(keys))).toMatchObject([{ kind: 'stored' }])
    expect(emittedEvents(t, 'event.unrouted')).toMatchObject([{ reason: 'fan-out' }])
    await t.advance('1s')
    expect(keysOf(t).toSorted()).toEqual(keys.toSorted())
    expect((await t.app.admin.deadLetters.list({ kind: 'unrouted' })).items).toEqual([])
    await t.advance('1h')
    expect(t.runs).toHaveLength(150)
  })

  test('L2 an event with exactly 100 lanes is placed at once', async () => {
    const t = await play(store, flow)
    await t.send(keyed(Array.from({ length: 100 }, (_, n) => `k${n}`)))
    expect(emittedEvents(t, 'event.unrouted')).toEqual([])
    await soon(t)
    expect(t.runs).toHaveLength(100)
  })

  test('L2 after a fan-out the window is the one of the time when the event was routed', async () => {
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'k',
        key: (event) => (event.data as { key: string[] }).key,
        window: { every: '10s' },
        run: () => {},
      }),
    )
    await t.send(keyed(Array.from({ length: 150 }, (_, n) => `k${n}`)))
    await t.advance('9s')
    expect(t.runs).toEqual([])
    await t.advance('2s')
    expect(t.runs).toHaveLength(150)
  })
})
