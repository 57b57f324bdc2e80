// publish with `at` and `to`: later, and only to some flows.
import { describe, expect, test } from 'vitest'
import { numbersOf, ping, play, sendNow, soon, START, STORES, emittedEvents, userOf, type Declare } from './scene.ts'
import { ownFile } from '../temporary-folder.ts'

const flow: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, run: () => {} })

describe.each(STORES)('publish at on %s', (store) => {
  test('at: the event is placed at that time, with all its fields', async () => {
    const t = await play(store, (app) =>
      app.flow('f', {
        on: 'shop/ping',
        key: (event) => `${event.tenant}/${event.subject}/${String(event.attributes['trace'])}/${event.id}`,
        run: () => {},
      }),
    )
    const event = {
      ...ping('u', 1),
      source: 'shop',
      tenant: 'x',
      subject: 's',
      id: 'evt_1',
      attributes: { trace: 't' },
    }
    await t.send(event, { at: START + 60_000 })
    await t.advance('59999ms')
    expect(t.runs.filter((run) => run.flow === 'f')).toEqual([])
    await t.advance('10ms')
    expect(t.runs.filter((run) => run.flow === 'f')).toMatchObject([
      { key: 'x/s/t/evt_1', events: [{ user: 'u', n: 1 }], ending: 'done' },
    ])
  })

  test('at: a Date and bytes are accepted', async () => {
    const bodies: string[] = []
    const t = await play(store, (app) =>
      app.flow('f', { on: 'raw', run: ({ events }) => void bodies.push(events[0]?.text ?? '') }),
    )
    await t.send({ type: 'raw', body: 'plain words' }, { at: new Date(START + 1_000) })
    await t.advance('2s')
    expect(bodies).toEqual(['plain words'])
  })

  test('at: a time in the past means now', async () => {
    const t = await play(store, flow)
    await t.send(ping('u', 1), { at: START - 60_000 })
    await t.advance('10ms')
    expect(t.runs.filter((run) => run.flow === 'f')).toHaveLength(1)
  })

  test('at: the same dedupe id at the same time is a duplicate', async () => {
    const t = await play(store, flow)
    const event = { ...ping('u', 1), dedupeId: 'a' }
    expect(await t.send(event, { at: START + 1_000 })).toMatchObject([{ kind: 'stored' }])
    expect(await t.send(event, { at: START + 1_000 })).toMatchObject([{ kind: 'duplicate' }])
    await t.advance('5s')
    expect(await t.send(event)).toMatchObject([{ kind: 'duplicate' }])
    await soon(t)
    expect(t.runs.filter((run) => run.flow === 'f')).toHaveLength(1)
  })

  test('at: many events are independent and arrive in the order of their times', async () => {
    const t = await play(store, flow)
    for (const n of [3, 1, 2]) await t.send(ping(`u${n}`, n), { at: START + n * 1_000 })
    await t.advance('10s')
    expect(t.runs.filter((run) => run.flow === 'f').map((run) => run.key)).toEqual(['u1', 'u2', 'u3'])
  })

  test('at: the event survives a crash', async () => {
    const t = await play(store, flow)
    await t.send(ping('u', 1), { at: START + 60_000 })
    await t.crash()
    await t.restart()
    await t.advance('61s')
    expect(t.runs.filter((run) => run.flow === 'f')).toHaveLength(1)
  })

  test.each([
    ['id', { id: 'x'.repeat(129) }],
    ['id', { id: '' }],
    ['type', { type: '' }],
    ['attributes', { attributes: [1] as unknown as Record<string, unknown> }],
  ])('at: what the store would refuse then is refused now: %s', async (field, wrong) => {
    const t = await play(store, flow)
    const sent = t.send({ ...ping('u', 1), ...wrong }, { at: START + 1_000 })
    await expect(sent).rejects.toMatchObject({ code: 'EVENT_INVALID', message: expect.stringContaining(field) })
    await t.advance('5s')
    expect(t.runs).toEqual([])
    expect(emittedEvents(t, 'event.received')).toEqual([])
  })

  test('at: the longest possible ids and a Date are accepted', async () => {
    const seen: unknown[] = []
    const t = await play(store, (app) =>
      app.flow('f', { on: 'ping', run: ({ events }) => void seen.push(...events.map(({ id, time }) => [id, time])) }),
    )
    const event = { ...ping('u', 1), id: 'x'.repeat(128), dedupeId: 'y'.repeat(1_024), time: new Date(START - 5) }
    await t.send(event, { at: START + 1_000 })
    await t.advance('2s')
    expect(seen).toEqual([['x'.repeat(128), START - 5]])
  })

  test('at: the same dedupe id is a duplicate whenever it is published', async () => {
    const t = await play(store, flow)
    const event = { ...ping('u', 1), dedupeId: 'a' }
    await t.send(event, { at: START + 60_000 })
    await t.advance('1s')
    expect(await t.send(event, { at: START + 60_000 })).toMatchObject([{ kind: 'duplicate' }])
  })

  test('at: the event is known by its own id afterwards', async () => {
    const t = await play(store, flow)
    await t.send({ ...ping('u', 1), id: 'mine' }, { at: START + 1_000 })
    await t.advance('5s')
    expect(await t.send({ ...ping('u', 1), id: 'mine' })).toMatchObject([{ kind: 'repeated' }])
  })
})

const two: Declare = (app) =>
  app
    .flow('f', { on: 'ping', key: userOf, run: () => {} })
    .flow('g', { on: 'pong', key: userOf, run: () => {} })
    .flow('h', { on: 'ping', key: userOf, run: () => {} })

describe.each(STORES)('publish to on %s', (store) => {
  test('to: only these flows get the event, whether or not their `on` matches it', async () => {
    const t = await play(store, two)
    await sendNow(t, ping('u', 1), { to: 'g' })
    expect(t.runs.map((run) => run.flow)).toEqual(['g'])
    await sendNow(t, ping('u', 2), { to: ['f', 'g'] })
    expect(t.runs.map((run) => run.flow).toSorted()).toEqual(['f', 'g', 'g'])
  })

  test('to: an unknown flow is rejected, and nothing is stored', async () => {
    const t = await play(store, two)
    await expect(t.send(ping('u', 1), { to: 'nobody' })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    expect(emittedEvents(t, 'event.received')).toEqual([])
    expect(numbersOf(t)).toEqual([])
  })
})

describe('publish at on a file', () => {
  test('at: the event survives the process', async () => {
    const store = ownFile()
    const first = await play(store, flow)
    await first.send(ping('u', 1), { at: START + 3_600_000 })
    await first.stop()
    const t = await play(store, flow, { now: START + 3_000_000 })
    await t.advance('11m')
    expect(t.runs.filter((run) => run.flow === 'f')).toHaveLength(1)
  })
})
