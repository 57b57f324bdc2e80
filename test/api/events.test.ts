// Tests stored events over the API: searching, showing and replaying them.
import { describe, expect, test } from 'vitest'
import { newEventId } from '../../src/model/event.ts'
import { cloudEvents, unverified } from '../../src/sources/index.ts'
import { rig, START, STORES, type Rig } from './rig.ts'
import { APP_KEY, declare, order, ping, seeded } from './seeded.ts'

interface Found {
  readonly items: readonly {
    readonly id: string
    readonly type: string
    readonly source: string
    readonly lanes: string[]
  }[]
}

interface Whole {
  readonly request?: { readonly body64?: string }
  readonly body: { readonly kind: string; readonly text: string }
  readonly lanes: readonly { readonly id: string; readonly state: string }[]
  readonly runs: readonly { readonly id: string; readonly kind: string }[]
}

const found = async (r: Rig, query: string): Promise<Found['items']> => {
  const { body, status } = await r.get(`/v1/events?${query}`)
  expect([query, status]).toEqual([query, 200])
  return (body as Found).items
}

describe.each(STORES)('events on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare, { encryptionKey: APP_KEY })

  test('of a subject are found, and so are their dead letters and unrouted events', async () => {
    const r = await opened()
    await r.t.send([
      ping('ada', 1, { subject: 'user 1' }),
      ping('bob', 2, { subject: 'user 2' }),
      { ...ping('bob', 3, { subject: 'user 2' }), type: 'bad' },
      { ...ping('odd', 4, { subject: 'user 1' }), type: 'odd' },
    ])
    await r.t.advance('1s')
    const types = async (query: string): Promise<readonly string[]> => (await found(r, query)).map(({ type }) => type)
    expect(await types('subject=user%201')).toEqual(['odd', 'ping'])
    expect(await types('subject=user%202&type=bad')).toEqual(['bad'])
    expect(await types('subject=nobody')).toEqual([])
    const counts = ['subject=user%202', 'subject=user%201', 'kind=unrouted&subject=user%201']
    const counted = await Promise.all(counts.map((query) => r.get(`/v1/dead-letters/count?${query}`)))
    expect(counted.map(({ body }) => body)).toMatchObject([{ count: 2 }, { count: 0 }, { count: 1 }])
    expect((await r.get('/v1/replays/count?subject=user%202')).body).toEqual({ count: 2 })
    expect((await r.post('/v1/dead-letters/drop', { subject: 'user 2' })).body).toMatchObject({ count: 2 })
    expect((await r.get('/v1/events?subject=')).status).toBe(400)
  })

  test.each([
    ['', 5],
    ['source=app', 4],
    ['source=app&type=ping', 2],
    ['type=pin', 0],
    ['tenant=acme', 1],
    ['tenant=', 4],
    ['flow=does&key=ada', 1],
    ['flow=does&key=nobody', 0],
    [`from=${START + 1_000}`, 2],
    [`to=${START + 1_000}`, 3],
    ['from=2026-01-01T00:00:01Z&type=ping', 0],
    ['from=2027-01-01', 0],
  ])('by %s: %i', async (query, count) => {
    const r = await opened()
    await r.t.send([ping('ada', 1, { tenant: 'acme' }), ping('bob'), { type: 'late', data: { user: 'ada' } }])
    await r.t.advance('1s')
    await r.t.send({ type: 'single' })
    await order(r.app, 'shop-token-0123456789', { n: 1 })
    expect(await found(r, query)).toHaveLength(count)
  })

  test('internal events of the engine are listed only on request', async () => {
    const r = await seeded(store)
    const sources = async (query: string): Promise<readonly string[]> => {
      const { body } = await r.get(`/v1/events?limit=1000&${query}`, { key: r.read })
      return (body as Found).items.map(({ source }) => source)
    }
    expect((await sources('')).filter((source) => source.startsWith('sluice.'))).toEqual([])
    expect((await sources('own=false')).filter((source) => source.startsWith('sluice.'))).toEqual([])
    expect(await sources('own=true')).toContain('sluice.replay')
  })

  test.each(['flow=does', 'key=ada', 'own=yes', 'limit=x', 'cursor=x', 'to=soon'])(
    'the list rejects %s',
    async (query) => {
      const r = await opened()
      expect((await r.get(`/v1/events?${query}`)).status).toBe(400)
    },
  )

  test('are shown with their lanes and runs', async () => {
    const r = await opened()
    const [event] = await r.t.send({ ...ping('ada', 7, { tenant: 'acme', subject: 's' }), id: 'the-event' })
    const [late] = await r.t.send({ type: 'late', data: { user: 'ada' } })
    await r.t.advance('1s')
    expect(event?.id).toBe('the-event')
    const { body } = await r.get('/v1/events/the-event')
    const runs = (body as Whole).runs
    expect(body).toMatchObject({
      id: 'the-event',
      source: 'app',
      type: 'ping',
      tenant: 'acme',
      subject: 's',
      arrived: START,
      purged: false,
      duplicates: 0,
      attributes: {},
      body: { kind: 'text', text: '{"user":"ada","n":7}' },
      receipts: [],
      lanes: [{ state: 'gone', flow: 'does', key: 'ada' }],
      runs: [{ flow: 'does', key: 'ada', kind: 'done' }],
    })
    expect(body).not.toHaveProperty('request')
    expect(runs[0]?.id).toBe(r.t.runs[0]?.id)
    expect((await r.get(`/v1/events/${late?.id ?? ''}`)).body).toMatchObject({
      lanes: [{ state: 'waiting', flow: 'waits', key: 'ada' }],
      runs: [],
    })
  })

  test('only the runs that took the event are shown, not all runs of its lane', async () => {
    const r = await opened()
    const [first] = await r.t.send(ping('ada', 1))
    await r.t.advance('1s')
    await r.t.send(ping('ada', 2))
    await r.t.advance('1s')
    const { runs } = (await r.get(`/v1/events/${first?.id ?? ''}`)).body as Whole
    expect(runs.map(({ id }) => id)).toEqual([r.t.runs[0]?.id])
    expect(r.t.runs).toHaveLength(2)
  })

  test('the request is shown without its secret, and each duplicate leaves a receipt', async () => {
    const r = await rig(store, (app) => app.source('in', unverified({ verify: 'none', id: 'n', type: () => 'order' })))
    const post = (body: string): Promise<Response> =>
      r.app.fetch(
        new Request('http://hooks.test/in/in?a=1', {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json', authorization: 'Bearer hush', 'x-trace': 't1' },
        }),
      )
    await post('{"n":1}')
    await r.t.advance('1s')
    await post('{"n":1}')
    await post('{"n":1,"more":true}')
    const { items } = (await r.get('/v1/events')).body as Found
    expect(items).toMatchObject([{ type: 'order', duplicates: 2 }])
    const whole = (await r.get(`/v1/events/${items[0]?.id ?? ''}`)).body
    expect(whole).toMatchObject({
      request: { method: 'POST', url: '/in/in?a=1', headers: { 'x-trace': 't1' } },
      receipts: [
        { kind: 'duplicate', at: START + 1_000 },
        { kind: 'conflict', at: START + 1_000 },
      ],
    })
    expect(JSON.stringify(whole)).not.toContain('hush')
  })

  test('of a request with several events, the first one keeps the whole request', async () => {
    const r = await rig(store, (app) => app.source('many', cloudEvents({ verify: 'none' })))
    const one = { specversion: '1.0', source: 's', type: 't' }
    const sent = JSON.stringify([
      { ...one, id: 'a', data: 1 },
      { ...one, id: 'b', data: 2 },
    ])
    const headers = { 'content-type': 'application/cloudevents-batch+json' }
    const { status } = await r.app.fetch(
      new Request('http://hooks.test/in/many', { method: 'POST', body: sent, headers }),
    )
    expect(status).toBeLessThan(300)
    const events = await Promise.all(
      (await found(r, '')).toReversed().map(async ({ id }) => (await r.get(`/v1/events/${id}`)).body as Whole),
    )
    expect(events.map(({ body }) => body.text)).toEqual(['1', '2'])
    const [first] = events.map(({ request }) => request?.body64 ?? '')
    expect(Buffer.from(first ?? '', 'base64').toString()).toBe(sent)
  })

  test('a body that is not text is base64, byte for byte; text is returned unchanged', async () => {
    const r = await opened()
    const bodies = [Buffer.from([0xff, 0x00, 0xfe]), Buffer.from('\u{feff}{"__proto__":{"x":1}}'), Buffer.from('a\0b')]
    const shown: unknown[] = []
    for (const body of bodies) {
      const [event] = await r.t.send({ type: 'blob', body })
      shown.push(((await r.get(`/v1/events/${event?.id ?? ''}`)).body as Whole).body)
    }
    expect(shown).toEqual([
      { kind: 'base64', text: '/wD+' },
      { kind: 'text', text: '\u{feff}{"__proto__":{"x":1}}' },
      { kind: 'text', text: 'a\0b' },
    ])
  })

  test('ids with any characters are found', async () => {
    const r = await opened()
    for (const id of ['a/b', 'ü ?#%', '%2F', '__proto__']) {
      await r.t.send({ ...ping('ada'), id })
      expect((await r.get(`/v1/events/${encodeURIComponent(id)}`)).body).toMatchObject({ id })
    }
  })

  test('a purged event is shown without its data', async () => {
    const r = await opened()
    await r.t.send({ ...ping('ada', 1, { subject: 'who' }), id: 'gone' })
    await r.app.admin.purge({ event: 'gone' })
    expect((await r.get('/v1/events/gone')).body).toMatchObject({
      purged: true,
      subject: '',
      body: { kind: 'text', text: '' },
    })
  })

  test('a replay runs the event again in the given flows', async () => {
    const r = await opened()
    await r.t.send({ ...ping('ada', 3), id: 'one' })
    await r.t.advance('1s')
    const { status, body } = await r.post('/v1/events/one/replay', { into: ['does'] })
    expect([status, body]).toMatchObject([
      200,
      { event: 'one', into: ['does'], found: 1, state: 'running', filter: {} },
    ])
    await r.t.advance('1s')
    expect(r.t.runs.filter(({ flow }) => flow === 'does').map(({ events }) => events)).toEqual([
      [{ user: 'ada', n: 3 }],
      [{ user: 'ada', n: 3 }],
    ])
    expect((await r.app.admin.audit.list()).items).toMatchObject([
      { who: 'loopback', what: expect.stringMatching(/^done \(id .+\): replay the event one$/) },
      { who: 'loopback', what: 'requested: replay the event one' },
    ])
  })

  test.each([
    ['an unknown flow', '/v1/events/one/replay', { into: ['nothing'] }, 400],
    ['one of the engine’s own flows', '/v1/events/one/replay', { into: ['sluice.replay'] }, 400],
    ['no flow', '/v1/events/one/replay', { into: [] }, 400],
    ['an unknown event', '/v1/events/two/replay', {}, 404],
  ])('refuses to replay into or of %s', async (_what, path, body, status) => {
    const r = await opened()
    await r.t.send({ ...ping('ada'), id: 'one' })
    expect((await r.post(path, body)).status).toBe(status)
    expect((await r.app.admin.replays.list()).length).toBe(0)
  })

  test('internal events of the engine cannot be replayed', async () => {
    const r = await rig(store, (app) => app.flow('all', { on: '**', run: () => {} }))
    await r.app.publish(ping('ada'), { at: START + 3_600_000 })
    const { items } = (await r.get('/v1/events?own=true')).body as Found
    expect(items).toMatchObject([{ source: 'sluice.delayed' }])
    expect((await r.post(`/v1/events/${items[0]?.id ?? ''}/replay`)).status).toBe(400)
    expect(await r.app.admin.replays.list()).toEqual([])
  })

  test('an unknown id returns 404', async () => {
    const r = await opened()
    expect((await r.get(`/v1/events/${newEventId(START)}`)).status).toBe(404)
    expect((await r.get(`/v1/events/${'x'.repeat(257)}`)).status).toBe(400)
  })
})
