// Tests the search for a text in events, their distribution over time, and what one event led to.
import { describe, expect, test } from 'vitest'
import type { StoredEventDetails, StoredEventPage } from '../../src/admin/stored-events.ts'
import type { Sluice } from '../../src/index.ts'
import { Gate } from '../engine/scene.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { APP_KEY, ping } from './seeded.ts'

const HOUR = 3_600_000
const userOf = (event: { readonly data: unknown }): string => (event.data as { user: string }).user
const declare = (app: Sluice): Sluice => app.flow('does', { on: 'ping', key: userOf, run: () => {} })
const search = async (r: Rig, query: string): Promise<StoredEventPage> => (await r.get(`/v1/events?${query}`)).body
const show = async (r: Rig, id = ''): Promise<StoredEventDetails> => (await r.get(`/v1/events/${id}`)).body
const found = ({ items }: StoredEventPage): readonly unknown[] => items.map((item) => item.found)

describe.each(STORES)('the search for a text in events on %s', (store) => {
  test('finds it in every field, in the payload and as a key, ignoring case', async () => {
    const r = await rig(store, declare)
    const needle = 'Needle'
    await r.t.send([
      { type: 'hay', data: {} },
      { type: 'a-needle', data: {} },
      { type: 'hay', source: 'needles', data: {} },
      { type: 'hay', tenant: 'NEEDLE', data: {} },
      { type: 'hay', subject: 'my needle', data: {} },
      { type: 'hay', id: 'needle-7', data: {} },
      { type: 'hay', data: { text: 'in the "NEEDLEWORK"' } },
      ping(needle),
    ])
    const page = await search(r, 'q=needle')
    expect(found(page)).toEqual(['payload', 'payload', 'id', 'subject', 'tenant', 'source', 'type'])
    expect(page).toMatchObject({ searched: { events: 8, from: START, complete: true } })
    expect(page.next).toBeUndefined()
    expect(found(await search(r, 'q=needle&type=hay&source=app'))).toEqual(['payload', 'id', 'subject', 'tenant'])
    expect(found(await search(r, 'q=nothing'))).toEqual([])
  })

  test('finds the events of a key that no payload contains', async () => {
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', key: () => 'the one key', run: () => {} }))
    await r.t.send([ping('ada'), { type: 'other' }])
    expect(found(await search(r, 'q=the+one+key'))).toEqual(['key'])
    expect(found(await search(r, 'q=the+one'))).toEqual([])
  })

  test('goes on page by page, finds each event once, and says how far it looked', async () => {
    const r = await rig(store, declare)
    for (let n = 0; n < 6; n++) {
      await r.t.send(
        Array.from({ length: 100 }, (_, at) => ping('ada', n, { subject: at % 10 === 0 ? 'hit' : 'miss' })),
      )
      await r.t.advance('1s')
    }
    const all = await search(r, 'q=hit&limit=1000')
    expect(all).toMatchObject({ searched: { events: 600, from: START, complete: true } })
    expect(all.items).toHaveLength(60)
    const ids: string[] = []
    let cursor = ''
    let looked = 0
    for (let pages = 0; pages < 20; pages++) {
      const page = await search(r, `q=hit&limit=7&cursor=${cursor}`)
      ids.push(...page.items.map(({ id }) => id))
      looked += page.searched?.events ?? 0
      expect(page.items.length).toBeLessThanOrEqual(7)
      expect(page.searched?.complete).toBe(page.next === undefined)
      if (page.next === undefined) break
      cursor = page.next
    }
    expect(ids).toEqual(all.items.map(({ id }) => id))
    expect(looked).toBe(600)
  })

  test('looks at 2,000 events or 8 MB, then returns a page without matches and a cursor', async () => {
    const r = await rig(store, declare)
    await r.t.send({ type: 'hay', data: { text: 'needle' } })
    for (let n = 0; n < 3; n++) await r.t.send(Array.from({ length: 800 }, () => ping('ada')))
    const first = await search(r, 'q=needle')
    expect(first).toMatchObject({ items: [], searched: { events: 2_000, complete: false } })
    const second = await search(r, `q=needle&cursor=${first.next}`)
    expect(found(second)).toEqual(['payload'])
    expect(second).toMatchObject({ searched: { events: 401, complete: true } })
    const big = 'x'.repeat(900_000)
    for (let n = 0; n < 12; n++) await r.t.send({ type: 'big', data: { big } })
    expect((await search(r, 'q=needle')).searched).toMatchObject({ events: 10, complete: false })
  })

  test('finds an id at once, however old its event is', async () => {
    const r = await rig(store, declare)
    const [old] = await r.t.send({ type: 'hay' })
    for (let n = 0; n < 3; n++) await r.t.send(Array.from({ length: 800 }, () => ping('ada')))
    const page = await search(r, `q=${old?.id}`)
    expect(page.items).toMatchObject([{ id: old?.id, found: 'id' }])
    expect((await search(r, `q=${old?.id}&cursor=${page.next}`)).items).toEqual([])
  })

  test('a purged payload is not searched, and a hostile one is only text', async () => {
    const r = await rig(store, declare)
    const [gone] = await r.t.send({ type: 'hay', data: { text: 'needle' } })
    await r.app.admin.purge({ event: gone?.id ?? '' })
    await r.t.send({ type: '<script>', data: { text: '<script>alert(1)</script>' } })
    expect((await search(r, 'q=needle')).items).toEqual([])
    expect((await search(r, `q=${encodeURIComponent('<SCRIPT>alert')}`)).items).toMatchObject([{ type: '<script>' }])
  })
})

interface Histogram {
  readonly step: number
  readonly from: number
  readonly counts: readonly number[]
  readonly complete: boolean
}

describe.each(STORES)('events by time on %s', (store) => {
  test('are counted over 24 hours, also with filters that only the events know', async () => {
    const r = await rig(store, declare)
    for (let n = 0; n < 4; n++) {
      await r.t.send([ping('ada', n, { tenant: n % 2 === 0 ? 'acme' : '' }), { type: 'other', source: 'shop' }])
      await r.t.advance('1h')
    }
    const count = async (query: string): Promise<Histogram> => (await r.get(`/v1/events/histogram?${query}`)).body
    const all = await count('step=1h')
    expect(all).toMatchObject({ step: HOUR, from: START + 4 * HOUR - 24 * HOUR, complete: true })
    expect(all.counts).toHaveLength(25)
    expect(all.counts.slice(-6)).toEqual([0, 2, 2, 2, 2, 0])
    expect((await count('step=1h&source=shop')).counts.slice(-6)).toEqual([0, 1, 1, 1, 1, 0])
    expect((await count('step=1h&tenant=acme')).counts.slice(-6)).toEqual([0, 1, 0, 1, 0, 0])
    expect(await count('tenant=acme')).toMatchObject({ step: HOUR / 2, complete: true })
  })

  test.each([['step=1m'], ['step=25m'], ['step=48h'], ['from=0']])('refuses ?%s', async (query) => {
    const r = await rig(store, declare)
    expect((await r.get(`/v1/events/histogram?${query}`)).status).toBe(400)
  })
})

describe.each(STORES)('what one event led to on %s', (store) => {
  test('its place in a lane, its run with the number of events, and until when it is kept', async () => {
    const gate = new Gate()
    const r = await rig(store, (app) =>
      app.flow('f', { on: 'ping', key: userOf, window: { quiet: '10s' }, run: () => gate.wait() }),
    )
    const [first, second] = await r.t.send([ping('ada', 1), ping('ada', 2)])
    expect(await show(r, second?.id)).toMatchObject({
      lanes: [{ flow: 'f', key: 'ada', state: 'waiting', due: START + 10_000, waiting: 2, position: 2 }],
      runs: [],
      deliveries: [],
      keptUntil: START + 90 * 24 * HOUR,
    })
    await r.t.advance('10s')
    const { lanes } = await show(r, first?.id)
    expect(lanes).toMatchObject([{ state: 'running', waiting: 0, run: { id: r.t.runs[0]?.id, events: 2 } }])
    expect(lanes[0]).not.toHaveProperty('position')
    gate.open()
    await r.t.settled()
    expect(await show(r, first?.id)).toMatchObject({
      lanes: [{ state: 'gone', flow: 'f', key: 'ada' }],
      runs: [{ kind: 'done', reason: '', tries: 0, attempts: [], events: 2, due: START + 10_000 }],
    })
  })

  test('its deliveries: one that waits for its batch, then one that waits for the endpoint', async () => {
    const r = await rig(store, (app) => app.delivery('d', { on: 'ping', batch: '1m' }), { encryptionKey: APP_KEY })
    const { id } = await r.app.endpoints.create({ url: 'https://one.example.com/', name: 'One' })
    await r.app.endpoints.pause(id, 'ada')
    const [event] = await r.t.send(ping('ada'))
    const waits = { endpoint: id, name: 'One', status: 'PENDING', attempts: [] }
    expect((await show(r, event?.id)).deliveries).toEqual([waits])
    await r.t.advance('1m')
    const { deliveries, lanes } = await show(r, event?.id)
    expect(lanes).toMatchObject([{ state: 'held', run: { state: 'snoozed' } }])
    expect(deliveries).toEqual([{ ...waits, run: lanes[0]?.run?.id }])
    await r.app.endpoints.delete(id)
    expect((await show(r, event?.id)).deliveries).toEqual([])
  })
})

describe.each(STORES)('runs on %s', (store) => {
  test('are filtered by how they ended and by event, and say why their batch closed', async () => {
    const r = await rig(store, (app) =>
      app.flow('does', { on: 'ping', key: userOf, window: { quiet: '1s' }, run: () => {} }).flow('fails', {
        on: 'ping',
        retry: [],
        run: () => {
          throw new Error('no')
        },
      }),
    )
    const [first] = await r.t.send([ping('ada'), ping('ada')])
    await r.t.advance('2s')
    await r.t.send(ping('bob'))
    await r.t.advance('2s')
    const runs = async (
      query: string,
    ): Promise<readonly { readonly flow: string; readonly closedBy: string; readonly opened: number }[]> =>
      ((await r.get(`/v1/runs?${query}`)).body as { items: never }).items
    const flows = async (query: string): Promise<readonly string[]> => (await runs(query)).map(({ flow }) => flow)
    expect(await flows('')).toHaveLength(5)
    expect(await flows('kind=dead')).toEqual(['fails', 'fails', 'fails'])
    expect(await flows('kind=done&limit=1')).toEqual(['does'])
    expect(await flows('kind=purged')).toEqual([])
    expect((await flows(`event=${first?.id}`)).toSorted()).toEqual(['does', 'fails'])
    expect(await flows(`event=${first?.id}&kind=done`)).toEqual(['does'])
    expect(await flows('event=nothing')).toEqual([])
    const [newest, oldest] = await runs('flow=does')
    expect(newest).toMatchObject({
      closedBy: 'quiet',
      opened: START + 2_000,
      latest: START + 2_000,
      due: START + 3_000,
    })
    expect(oldest).toMatchObject({ closedBy: 'quiet', opened: START })
    expect((await runs('flow=fails'))[0]).toMatchObject({ closedBy: 'none' })
  })
})
