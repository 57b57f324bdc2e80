// L10: the same identity with the same bytes is a duplicate, with other bytes a conflict. Tenants and sources are separate.
import { describe, expect, test } from 'vitest'
import type { EventInput } from '../../src/index.ts'
import { numbersOf, ping, play, sendNow, soon, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

const flow: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {} })

function named(dedupeId: string, n = 1, more: Partial<EventInput> = {}): EventInput {
  return { ...ping('u', n), dedupeId, ...more }
}

describe.each(STORES)('L10 duplicates on %s', (store) => {
  test('L10 the same dedupe id and bytes are a duplicate that names the first event', async () => {
    const t = await play(store, flow)
    const [first] = await sendNow(t, named('a'))
    const [second] = await sendNow(t, named('a'))
    expect(first).toMatchObject({ kind: 'stored', of: undefined })
    expect(second).toMatchObject({ kind: 'duplicate', of: first?.id })
    expect(numbersOf(t)).toEqual([[1]])
    expect(emittedEvents(t, 'event.duplicate')).toMatchObject([{ of: first?.id, source: 'app', type: 'ping' }])
  })

  test('L10 the same identity with other bytes is a conflict: it is not stored, and is emitted', async () => {
    const t = await play(store, flow)
    const [first] = await sendNow(t, named('a', 1))
    const [second] = await sendNow(t, named('a', 2))
    expect(second).toMatchObject({ kind: 'conflict', of: first?.id })
    expect(numbersOf(t)).toEqual([[1]])
    expect(emittedEvents(t, 'event.conflict')).toHaveLength(1)
  })

  test('L10 duplicates are found inside one batch', async () => {
    const t = await play(store, flow)
    const published = await sendNow(t, [named('a', 1), named('a', 1), named('a', 2), named('b', 3)])
    expect(published.map((one) => one.kind)).toEqual(['stored', 'duplicate', 'conflict', 'stored'])
    expect(numbersOf(t)).toEqual([[1, 3]])
  })

  test('L10 duplicates are found inside a window', async () => {
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, run: () => {} }),
    )
    await t.send(named('a'))
    await t.advance('5s')
    await t.send(named('a'))
    await t.advance('5s')
    expect(t.runs).toMatchObject([{ at: 10_000, events: [{ n: 1 }] }])
  })

  test('L10 duplicates are found for 7 days, long after the work is done', async () => {
    const t = await play(store, flow)
    await sendNow(t, named('a'))
    await t.advance('6d')
    expect(await t.send(named('a'))).toMatchObject([{ kind: 'duplicate' }])
    await t.advance('25h')
    expect(await sendNow(t, named('a'))).toMatchObject([{ kind: 'stored' }])
    expect(t.runs).toHaveLength(2)
  })

  test('L10 tenants and sources have separate identities', async () => {
    const t = await play(store, flow)
    const published = await sendNow(t, [
      named('a', 1, { tenant: 'x' }),
      named('a', 1, { tenant: 'y' }),
      named('a', 1),
      named('a', 1, { source: 'shop' }),
    ])
    expect(published.map((one) => one.kind)).toEqual(['stored', 'stored', 'stored', 'stored'])
    expect(numbersOf(t)).toEqual([[1, 1, 1, 1]])
  })

  test('L10 an id without a dedupe id is the dedupe id', async () => {
    const t = await play(store, flow)
    await sendNow(t, { ...ping('u', 1), id: 'evt_1' })
    const [again] = await sendNow(t, { ...ping('u', 1), id: 'evt_1' })
    expect(['duplicate', 'repeated']).toContain(again?.kind)
    expect(t.runs).toHaveLength(1)
  })

  test('L10 without an id or a dedupe id, every event is new', async () => {
    const t = await play(store, flow)
    await sendNow(t, [ping('u', 1), ping('u', 1)])
    await soon(t)
    expect(numbersOf(t)).toEqual([[1, 1]])
  })

  test('L10 one id with two dedupe ids is a conflict', async () => {
    const t = await play(store, flow)
    await sendNow(t, { ...ping('u', 1), id: 'same', dedupeId: 'a' })
    const [second] = await sendNow(t, { ...ping('u', 2), id: 'same', dedupeId: 'b' })
    expect(second).toMatchObject({ kind: 'conflict', of: 'same' })
    expect(numbersOf(t)).toEqual([[1]])
  })
})
