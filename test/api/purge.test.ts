// Tests purge over the API: everything of one key, tenant or event is removed, and the response counts it.
import { describe, expect, test } from 'vitest'
import { STORES } from './rig.ts'
import { seeded, type Seeded } from './seeded.ts'

interface Whole {
  readonly purged: boolean
  readonly tenant: string
}

const purged = async (r: Seeded): Promise<readonly Whole[]> =>
  ((await r.get('/v1/events?limit=1000', { key: r.read })).body as { readonly items: readonly Whole[] }).items.filter(
    (event) => event.purged,
  )

describe.each(STORES)('purge on %s', (store) => {
  test('removes the events, dead letters and runs of a tenant', async () => {
    const r = await seeded(store)
    const { status, body } = await r.post('/v1/purge', { tenant: 'acme' }, { key: r.operate })
    expect([status, body]).toMatchObject([200, { events: 9, deadLetters: 6 }])
    expect((body as { runs: number }).runs).toBeGreaterThan(8)
    expect(new Set((await purged(r)).map(({ tenant }) => tenant))).toEqual(new Set(['acme']))
    expect((await r.get('/v1/dead-letters/count?tenant=acme', { key: r.read })).body).toMatchObject({ count: 0 })
    expect((await r.post('/v1/purge', { tenant: 'acme' }, { key: r.operate })).body).toMatchObject({ events: 0 })
    expect((await r.app.admin.audit.list()).items[0]).toMatchObject({
      who: 'operator',
      what: 'done (events 0, deadLetters 0, runs 0): purge {"tenant":"acme"}',
    })
  })

  test('removes everything of a key, and of an event', async () => {
    const r = await seeded(store)
    const key = { key: r.operate }
    expect((await r.post('/v1/purge', { flow: 'does', key: 'bob' }, key)).body).toMatchObject({ events: 3 })
    const [event] = ((await r.get('/v1/events?type=single', key)).body as { readonly items: readonly { id: string }[] })
      .items
    expect((await r.post('/v1/purge', { event: event?.id }, key)).body).toMatchObject({ events: 1 })
    expect(await purged(r)).toHaveLength(4)
    expect((await r.post('/v1/purge', { event: 'nothing' }, key)).body).toEqual({ events: 0, deadLetters: 0, runs: 0 })
  })

  test.each([
    {},
    { tenant: '' },
    { event: '' },
    { flow: 'does' },
    { key: 'bob' },
    { flow: 'does', key: 'bob', tenant: 'acme' },
    { tenant: 'acme', event: 'x' },
    { tenant: ['acme'] },
    { tenant: null },
    { filter: {} },
  ])('refuses %j, and removes nothing', async (body) => {
    const r = await seeded(store)
    expect((await r.post('/v1/purge', body, { key: r.operate })).status).toBe(400)
    expect(await purged(r)).toEqual([])
  })

  test('a key with the role read cannot purge', async () => {
    const r = await seeded(store)
    expect((await r.post('/v1/purge', { tenant: 'acme' }, { key: r.read })).status).toBe(403)
    expect(await purged(r)).toEqual([])
  })
})
