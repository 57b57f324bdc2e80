// Tests replays over the API: counting, starting, watching and cancelling them.
import { describe, expect, test } from 'vitest'
import { rig, START, STORES, type Rig } from './rig.ts'
import { ping } from './seeded.ts'

const key = (event: { readonly data: unknown }): string => (event.data as { readonly user: string }).user

describe.each(STORES)('replays on %s', (store) => {
  const opened = async (): Promise<Rig> => {
    const r = await rig(store, (app) => app.flow('f', { on: 'ping', key, run: () => {} }))
    await r.t.send([ping('ada', 1, { tenant: 'acme' }), ping('bob', 2), { type: 'other', data: { user: 'ada' } }])
    await r.t.advance('1s')
    return r
  }

  test.each([
    ['', 3],
    ['type=ping', 2],
    ['tenant=acme', 1],
    ['flow=f&key=bob', 1],
    [`from=${START + 1}`, 0],
    ['event=nothing', 0],
  ])('count by %s: %i', async (query, count) => {
    const r = await opened()
    expect((await r.get(`/v1/replays/count?${query}`)).body).toEqual({ count })
  })

  test('a replay of at most so many events takes the oldest, and ends', async () => {
    const r = await opened()
    const asked = { filter: { type: 'ping' }, into: ['f'], most: 1 }
    const { body } = await r.post('/v1/replays', { ...asked, id: 'try' })
    expect(body).toMatchObject({ found: 1, most: 1 })
    await r.t.advance('1m')
    expect((await r.get('/v1/replays/try')).body).toMatchObject({ state: 'done', scanned: 1, placed: 1 })
    const runs = (await r.get('/v1/runs?flow=f')).body as { items: readonly { key: string }[] }
    expect(runs.items.map(({ key: one }) => one).toSorted()).toEqual(['ada', 'ada', 'bob'])
    expect((await r.post('/v1/replays', { ...asked, most: 0 })).status).toBe(400)
  })

  test('a replay is started, shown while it runs, and listed', async () => {
    const r = await opened()
    const asked = { filter: { type: 'ping', to: '2027-01-01' }, id: 'mended', into: ['f'], rate: 50, per: '1s' }
    const { status, body } = await r.post('/v1/replays', asked)
    expect([status, body]).toMatchObject([
      200,
      {
        id: 'mended',
        state: 'running',
        filter: { type: 'ping', to: Date.UTC(2027, 0, 1) },
        into: ['f'],
        rate: 50,
        per: 1_000,
        found: 2,
      },
    ])
    expect(JSON.stringify(body)).not.toContain('sluice.')
    await r.t.advance('5s')
    expect((await r.get('/v1/replays/mended')).body).toMatchObject({ state: 'done', scanned: 2, placed: 2 })
    expect(r.t.runs.filter(({ flow }) => flow === 'f')).toHaveLength(4)
    await r.post('/v1/replays', { filter: { event: 'nothing' }, id: 'none' })
    const { items } = (await r.get('/v1/replays')).body as { readonly items: readonly { id: string }[] }
    expect(items.map(({ id }) => id)).toEqual(['none', 'mended'])
    expect((await r.app.admin.audit.list()).items.at(-1)?.what).toBe(
      'requested: begin the replay mended of {"type":"ping","to":1798761600000} into f',
    )
  })

  test.each([
    [{ from: START, to: START + 60_000 }, 200],
    [{ from: String(START), to: '2027-01-01T00:00:00Z' }, 200],
    [{ from: START + 0.5 }, 400],
    [{ from: -1 }, 400],
    [{ from: true }, 400],
    [{ from: 'yesterday' }, 400],
  ])('times of a filter: %j is %i', async (filter, status) => {
    const r = await opened()
    const answer = await r.post('/v1/replays', { filter })
    expect(answer.status).toBe(status)
    if (status === 200) expect(answer.body).toMatchObject({ filter: { from: START }, found: 3 })
    else expect(answer.body).toMatchObject({ detail: expect.stringContaining('a time is milliseconds since 1970') })
  })

  test('two requests with the same id start it once; with another filter the second is rejected', async () => {
    const r = await opened()
    const asked = { filter: { type: 'ping' }, id: 'once' }
    await r.post('/v1/replays', asked)
    expect((await r.post('/v1/replays', asked)).status).toBe(200)
    expect((await r.post('/v1/replays', { ...asked, filter: {} })).status).toBe(400)
    await r.t.advance('5s')
    expect(r.t.runs.filter(({ flow }) => flow === 'f')).toHaveLength(4)
  })

  test('after cancel, a replay places no more events', async () => {
    const r = await opened()
    await r.app.admin.flows.pause('sluice.replay', { reason: 'for the test', by: 'test' })
    await r.post('/v1/replays', { filter: {}, id: 'stopped' })
    expect((await r.post('/v1/replays/stopped/cancel')).body).toEqual({ result: 'ok' })
    expect((await r.post('/v1/replays/stopped/cancel')).body).toEqual({ result: 'already' })
    await r.app.admin.flows.resume('sluice.replay')
    await r.t.advance('5s')
    expect((await r.get('/v1/replays/stopped')).body).toMatchObject({ state: 'cancelled', placed: 0 })
  })

  test.each([
    {},
    { type: 'ping' },
    { filter: [] },
    { filter: { colour: 'red' } },
    { filter: { flow: 'f' } },
    { filter: { key: 'ada' } },
    { filter: { event: 'x', type: 'ping' } },
    { filter: { from: 'soon' } },
    { filter: { from: 5.5 } },
    { filter: {}, id: '' },
    { filter: {}, id: 'count' },
    { filter: {}, into: ['nothing'] },
    { filter: {}, into: 'f' },
    { filter: {}, rate: 0 },
    { filter: {}, rate: 1.5 },
    { filter: {}, per: '1ms' },
    { filter: {}, per: 'always' },
  ])('refuses %j, and begins nothing', async (body) => {
    const r = await opened()
    expect((await r.post('/v1/replays', body)).status).toBe(400)
    expect((await r.get('/v1/replays')).body).toEqual({ items: [] })
  })
})
