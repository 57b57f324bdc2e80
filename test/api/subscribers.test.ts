// Tests endpoints over the API: registering, listing, changing, pausing, resuming, rotating and deleting them. No secret is shown twice.
import { describe, expect, test } from 'vitest'
import { rig, START, STORES, type Rig } from './rig.ts'
import { APP_KEY } from './seeded.ts'

const PATH = '/v1/webhooks/subscribers'
const URL = 'https://subscriber.example.com/hook'

async function scene(store: string, key: string | undefined = APP_KEY): Promise<Rig> {
  return rig(
    store,
    (app) => app.delivery('versions', { on: 'version.*', window: { quiet: '1h' } }),
    key === '' ? {} : { encryptionKey: key },
  )
}

async function registered(r: Rig, more = {}): Promise<{ readonly id: string; readonly secret: string }> {
  return (await r.post(PATH, { url: URL, ...more })).body
}

describe.each(STORES)('on %s', (store) => {
  test('registering an endpoint shows its secret once', async () => {
    const r = await scene(store)
    const { id, secret } = await registered(r, { name: 'Ada', eventFilter: ['version.new'], tenant: 't' })
    expect(secret).toMatch(/^whsec_/)
    const wanted = { id, name: 'Ada', url: URL, eventFilter: ['version.new'], tenant: 't', active: true }
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject(wanted)
    const { body } = await r.get(PATH)
    expect(body).toMatchObject({ items: [wanted] })
    expect(JSON.stringify(body)).not.toContain(secret)
  })

  test('an endpoint shows what waits for it, and its last day', async () => {
    const r = await scene(store)
    const { id } = await registered(r)
    await r.t.advance('1s')
    const { id: other } = await registered(r, { eventFilter: ['nothing'] })
    await r.t.send([{ type: 'version.new' }, { type: 'version.new' }])
    const lastDay = Array.from({ length: 48 }, (_, n) => ({
      at: START + (n - 47) * 1_800_000,
      delivered: 0,
      failed: 0,
    }))
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject({ waiting: 2, lastDay })
    const { items } = (await r.get(PATH)).body as { items: readonly object[] }
    expect(items).toMatchObject([
      { id, waiting: 2 },
      { id: other, waiting: 0 },
    ])
    expect(items[0]).not.toHaveProperty('nextTry')
  })

  test.each([
    [{ url: 'http://169.254.169.254/latest' }, 'url'],
    [{ url: 'https://localhost/' }, 'url'],
    [{ url: URL, secret: 'short' }, 'secret'],
    [{ url: URL, headers: { Connection: 'close' } }, 'headers'],
  ])('%o is refused, and names %s', async (body, field) => {
    const r = await scene(store)
    const answer = await r.post(PATH, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code: 'ENDPOINT_INVALID', detail: expect.stringContaining(field) })
    expect((await r.get(PATH)).body).toEqual({ items: [] })
  })

  test('every route accepts the same maximum length of a url', async () => {
    const r = await scene(store)
    const long = URL.padEnd(2_048, 'x')
    expect(await r.post(PATH, { url: long })).toMatchObject({ status: 200, body: { url: long } })
    expect(await r.post(PATH, { url: `${long}x` })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('2048') },
    })
    await expect(r.app.endpoints.create({ url: `${long}x` })).rejects.toThrow('2048')
  })

  test('without an encryption key, no endpoint with a secret can be stored', async () => {
    const r = await scene(store, '')
    expect(await r.post(PATH, { url: URL })).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
  })

  test('a change applies to later events, and unnamed fields stay as they are', async () => {
    const r = await scene(store)
    const { id } = await registered(r, { description: 'd', eventFilter: ['version.old'] })
    await r.app.publish({ type: 'version.new', data: 1 })
    expect((await r.app.admin.lanes.list()).items).toEqual([])
    const changed = await r.call('PATCH', `${PATH}/${id}`, { body: { eventFilter: ['version.*'] } })
    expect(changed.body).toMatchObject({ id, url: URL, description: 'd', eventFilter: ['version.*'] })
    await r.app.publish({ type: 'version.new', data: 2 })
    expect((await r.app.admin.lanes.list()).items).toMatchObject([{ key: id, waiting: 1 }])
    const tenant = await r.call('PATCH', `${PATH}/${id}`, { body: { tenant: 't' } })
    expect(tenant.status).toBe(400)
  })

  test('headers are listed by name only; one can be changed or removed without the others', async () => {
    const r = await scene(store)
    const { id } = await registered(r, { headers: { authorization: 'Bearer hush', 'x-team': 'a' } })
    const { secret: operate } = await r.app.admin.keys.create({ name: 'acts', role: 'operate' })
    const { secret: key } = await r.app.admin.keys.create({ name: 'looks', role: 'read' })
    const listed = await r.get(PATH, { key })
    expect(listed.body).toMatchObject({ items: [{ id, headers: ['authorization', 'x-team'] }] })
    expect(JSON.stringify(listed.body)).not.toContain('hush')
    const changed = await r.call('PATCH', `${PATH}/${id}`, { key: operate, body: { headers: { 'x-team': null } } })
    expect(changed.body).toMatchObject({ headers: ['authorization'] })
    expect(await r.app.endpoints.findTarget(id)).toMatchObject({ headers: { authorization: 'Bearer hush' } })
  })

  test('every field of an endpoint can be set', async () => {
    const r = await scene(store)
    const said = { name: 'Ada', secret: 'shared-secret-key', active: false, eventFilter: null }
    const { id } = await registered(r, said)
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject({ name: 'Ada', active: false, eventFilter: ['**'] })
    const changed = async (body: object): Promise<unknown> => (await r.call('PATCH', `${PATH}/${id}`, { body })).body
    expect(await changed({ active: true })).toMatchObject({ active: true })
    expect(await changed({ eventFilter: ['version.new'] })).toMatchObject({ eventFilter: ['version.new'] })
    expect(await changed({ eventFilter: [], secret: 'another-secret-key' })).toMatchObject({ eventFilter: ['**'] })
    expect(await changed({ eventFilter: ['version.new'] })).toMatchObject({ eventFilter: ['version.new'] })
    expect(await changed({ eventFilter: null, active: false })).toMatchObject({ eventFilter: ['**'], active: false })
    expect((await r.app.endpoints.findTarget(id))?.secrets).toEqual(['another-secret-key', 'shared-secret-key'])
    expect(JSON.stringify((await r.get(PATH)).body)).not.toContain('secret-key')
  })

  test('an endpoint can be paused and resumed', async () => {
    const r = await scene(store)
    await r.app.admin.flows.pause('versions', { reason: 'a test', by: 'ada' })
    const { id } = await registered(r)
    await r.app.publish({ type: 'version.new', data: 1 })
    expect((await r.post(`${PATH}/${id}/pause`)).body).toMatchObject({ active: false })
    const [held] = (await r.app.admin.lanes.list()).items
    expect(held?.hold).toMatchObject({ reason: 'The endpoint is paused.' })
    expect((await r.post(`${PATH}/${id}/resume`)).body).toMatchObject({ active: true })
    expect((await r.app.admin.lanes.list()).items[0]?.hold).toBeUndefined()
  })

  test('trigger ends open windows of deliveries, and no others', async () => {
    const r = await scene(store)
    // Nothing is posted in this test.
    await r.app.admin.flows.pause('versions', { reason: 'a test', by: 'ada' })
    const [open, paused] = [await registered(r, { tenant: 'a' }), await registered(r, { tenant: 'b' })]
    for (const tenant of ['a', 'b']) await r.app.publish({ type: 'version.new', data: 1, tenant })
    await r.post(`${PATH}/${paused.id}/pause`)
    expect(await r.post('/v1/webhooks/trigger')).toMatchObject({ status: 202, body: { triggered: 1 } })
    const lanes = new Map((await r.app.admin.lanes.list()).items.map((lane) => [lane.key, lane]))
    expect(lanes.get(open.id)?.due).toBeLessThanOrEqual(START)
    expect(lanes.get(paused.id)?.due).toBeGreaterThan(START)
    expect((await r.post('/v1/webhooks/trigger')).body).toEqual({ triggered: 0 })
  })

  test('an endpoint whose batch is stuck is down', async () => {
    const r = await scene(store)
    await r.app.admin.flows.pause('versions', { reason: 'a test', by: 'ada' })
    const { id } = await registered(r)
    await r.app.publish({ type: 'version.new', data: 1 })
    await r.t.advance('1m')
    await registered(r, { tenant: 'other' })
    await r.t.advance('63m')
    const up = { status: 'up', stuckBatches: 0 }
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject({ health: up })
    await r.t.advance('2m')
    const down = { status: 'down', stuckBatches: 1 }
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject({ health: down })
    expect((await r.get(PATH)).body).toMatchObject({ items: [{ id, health: down }, { health: up }] })
  })

  test('a secret can be rotated, but only once a day unless forced', async () => {
    const r = await scene(store)
    const { id, secret } = await registered(r)
    const before = ((await r.get(`${PATH}/${id}`)).body as { secrets: readonly [{ since: number }] }).secrets
    expect(before).toEqual([{ since: expect.any(Number) }])
    await r.t.advance('1h')
    const next = (await r.post(`${PATH}/${id}/rotate-secret`)).body as { secret: string }
    const since = before[0].since + 3_600_000
    expect((await r.get(`${PATH}/${id}`)).body).toMatchObject({
      secrets: [{ since }, { since: before[0].since, until: since + 24 * 3_600_000 }],
    })
    expect(next.secret).not.toBe(secret)
    expect(await r.post(`${PATH}/${id}/rotate-secret`)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    expect(await r.post(`${PATH}/${id}/rotate-secret`, { force: true })).toMatchObject({ status: 200 })
  })

  test('deleting an endpoint drops its waiting events; each action is in the audit log', async () => {
    const r = await scene(store)
    const { id } = await registered(r)
    await r.app.publish([1, 2, 3].map((data) => ({ type: 'version.new', data })))
    expect((await r.call('DELETE', `${PATH}/${id}`)).body).toEqual({ dropped: 3 })
    expect((await r.get(PATH)).body).toEqual({ items: [] })
    expect((await r.app.admin.lanes.list()).items).toEqual([])
    const { items } = await r.app.admin.audit.list()
    expect(items.map(({ what }) => what)).toEqual([`removed endpoint ${id}`, `added endpoint ${id}`])
  })
})
