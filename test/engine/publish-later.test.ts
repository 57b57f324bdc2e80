// publish with `at` and `to`: which flows get the event, which id it has, and which flows `to` rejects.
import { describe, expect, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { ping, play, sendNow, Shared, START, STORES, emittedEvents, userOf, type Declare } from './scene.ts'

const MINUTE = 60_000

const two: Declare = (app) =>
  app
    .flow('f', { on: 'ping', key: userOf, run: () => {} })
    .flow('g', { on: 'pong', key: userOf, run: () => {} })
    .every('sweep', '1h', () => {})

describe.each(STORES)('publish at and to on %s', (store) => {
  test('at with to: at that time, and only to these flows', async () => {
    const t = await play(store, two)
    await t.send(ping('u', 1), { at: START + MINUTE, to: 'g' })
    await t.send(ping('v', 1), { at: START + MINUTE, to: ['f', 'g'] })
    await t.advance('59s')
    expect(t.runs).toEqual([])
    await t.advance('2s')
    const ran = t.runs.filter((run) => run.flow === 'f' || run.flow === 'g')
    expect(ran.map((run) => `${run.flow}:${run.key}`).toSorted()).toEqual(['f:v', 'g:u', 'g:v'])
  })

  test('at with to: an unknown flow is rejected at once, not at that time', async () => {
    const t = await play(store, two)
    const sent = t.send(ping('u', 1), { at: START + MINUTE, to: 'nobody' })
    await expect(sent).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    expect(emittedEvents(t, 'event.received')).toEqual([])
  })

  test('at with to: for a flow that is gone by then, the event stays unrouted', async () => {
    const shared = await Shared.open(store)
    const both = await shared.process('both', two)
    await both.publish(ping('u', 1), { at: START + MINUTE, to: 'g' })
    await shared.stop(both)
    const docs = (await shared.store.readDocs({ kind: 'flow', ids: ['g'], after: '', n: 1 })).docs
    const writes = docs.map(({ kind, id, rev }) => ({ kind, id, ifRev: rev, body: undefined }))
    await shared.store.writeDocs({ writes, raiseRoutes: true, audit: undefined })
    const other = await shared.process('other', (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {} }))
    await shared.advance(2 * MINUTE)
    const { items } = await other.admin.deadLetters.list({ kind: 'unrouted' })
    expect(items).toMatchObject([{ flow: 'g', reason: 'unknown-flow' }])
  })

  test('at: the result has the id that the event will have', async () => {
    const ids: string[] = []
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'ping',
        run: ({ events }) => void ids.push(...events.map((event) => event.id)),
      }),
    )
    const at = START + MINUTE
    expect(await t.send({ ...ping('u', 1), id: 'mine' }, { at })).toEqual([
      { id: 'mine', kind: 'stored', of: undefined },
    ])
    const [other] = await t.send({ ...ping('u', 2), dedupeId: 'other' }, { at })
    expect(await t.send({ ...ping('u', 2), dedupeId: 'other' }, { at })).toMatchObject([
      { kind: 'duplicate', of: other?.id },
    ])
    expect(await t.send({ ...ping('u', 3), dedupeId: 'other' }, { at })).toMatchObject([
      { kind: 'conflict', of: other?.id },
    ])
    await t.advance('61s')
    expect(new Set(ids)).toEqual(new Set(['mine', other?.id]))
  })
})

describe.each(STORES)('publish to internal flows, on %s', (store) => {
  test.each<[string, unknown]>([
    ['nobody at all', []],
    ['the flow of delayed events', 'sluice.delayed'],
    ['the flow of a schedule', 'every/sweep'],
    ['one that is, and one that is not', ['f', 'every/sweep']],
    ['a number', 5],
    ['nothing', null],
    ['a list of nothing', [null]],
  ])('to: %s is refused, and nothing is stored', async (_name, to) => {
    const t = await play(store, two)
    const sent = t.send(ping('u', 1), { to: to as string })
    await expect(sent).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringContaining('to '),
    })
    expect(emittedEvents(t, 'event.received')).toEqual([])
  })

  test('to: the schedule of another process is rejected too', async () => {
    const shared = await Shared.open(store)
    await shared.process('ticks', two)
    const sender = new Sluice({ log: false, store: shared.store, clock: shared.clock })
    await expect(sender.publish(ping('u'), { to: 'every/sweep' })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
    expect(await sender.publish(ping('u'), { to: 'f' })).toMatchObject([{ kind: 'stored' }])
  })

  test('an internal source is rejected by name', async () => {
    const t = await play(store, two)
    const sent = sendNow(t, { ...ping('u'), source: 'sluice.every' })
    await expect(sent).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringContaining('source'),
    })
  })
})
