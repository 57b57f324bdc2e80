// Tests transformations over the API: setting, versions, removing, trying one on an event, roles and the audit log.
import { describe, expect, test } from 'vitest'
import { rig, STORES, type Rig } from './rig.ts'
import { APP_KEY } from './seeded.ts'

const PATH = '/v1/webhooks/subscribers'

interface Scene {
  readonly t: Rig['t']
  readonly app: Rig['app']
  readonly call: Rig['call']
  readonly get: Rig['get']
  readonly post: Rig['post']
  readonly id: string
  readonly path: string
}

async function scene(store: string, fields = {}): Promise<Scene> {
  const r = await rig(store, (app) => app.delivery('orders', { on: 'order.*', window: { quiet: '1h' } }), {
    encryptionKey: APP_KEY,
  })
  const { id } = await r.app.endpoints.create({ url: 'https://example.com/hook', ...fields })
  return { ...r, id, path: `${PATH}/${id}/transform` }
}

const coded = (name: string): string => `export default (events) => ({ body: '${name}' + events[0].id })`

describe.each(STORES)('on %s', (store) => {
  test('each new code is a version, and an earlier one can be set again', async () => {
    const { get, post, path, id } = await scene(store)
    expect((await get(path)).body).toEqual({ versions: [] })
    expect((await post(path, { code: coded('one') })).body).toMatchObject({ version: 1, by: 'loopback' })
    expect((await post(path, { code: coded('two') })).body).toMatchObject({ version: 2 })
    expect((await post(path, { code: coded('two') })).body).toMatchObject({ version: 2 })
    expect((await get(`${PATH}/${id}`)).body).toMatchObject({ transform: 2 })
    expect((await post(path, { version: 1 })).body).toMatchObject({ version: 3, code: coded('one') })
    const { body } = await get(path)
    expect(body).toMatchObject({ current: { version: 3, code: coded('one') } })
    expect((body as { versions: { version: number }[] }).versions.map(({ version }) => version)).toEqual([3, 2, 1])
  })

  test('the last ten versions are kept', async () => {
    const { get, post, path } = await scene(store)
    for (let n = 1; n <= 12; n++) await post(path, { code: coded(`v${n}`) })
    const { versions } = (await get(path)).body as { versions: { version: number }[] }
    expect(versions.map(({ version }) => version)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
    expect(await post(path, { version: 2 })).toMatchObject({
      status: 404,
      body: { code: 'NOT_FOUND', detail: expect.stringContaining('Kept are 3, 4') },
    })
  })

  test('a removed transformation is used no more, and its versions stay', async () => {
    const { call, get, post, path, id } = await scene(store)
    expect((await call('DELETE', path)).status).toBe(404)
    await post(path, { code: coded('one') })
    expect((await call('DELETE', path)).body).toEqual({ result: 'ok' })
    expect((await get(path)).body).toMatchObject({ versions: [{ version: 1 }] })
    expect((await get(path)).body).not.toHaveProperty('current')
    expect((await get(`${PATH}/${id}`)).body).toMatchObject({ transform: null })
  })

  test.each([
    [{ code: 'export default (' }, /does not load: SyntaxError: .* \(line 1\)/],
    [{ code: 'export const no = 1' }, /no default export that is a function/],
    [{ code: '' }, /code must be a text of 1 to 65,536 bytes/],
    [{ code: `//${'é'.repeat(40_000)}` }, /code must be a text of 1 to 65,536 bytes/],
    [{}, /must have either code or version/],
    [{ code: coded('a'), version: 1 }, /must have either code or version/],
  ])('%j is rejected with the reason, and nothing is stored', async (body, reason) => {
    const { get, post, path } = await scene(store)
    const { status, body: problem } = await post(path, body)
    expect([status, problem]).toMatchObject([400, { code: 'ENDPOINT_INVALID', detail: expect.stringMatching(reason) }])
    expect((await get(path)).body).toEqual({ versions: [] })
  })

  test('a test shows input, output, body, console and time, and posts nothing', async () => {
    const { app, t, post, path, id } = await scene(store, { form: 'flat' })
    const event = { id: 'o1', type: 'order.paid', subject: 'o/1', data: { total: 42, card: '4242' } }
    await t.send(event)
    const code = `export default ([event]) => {
      console.log('total', event.data.total)
      return [{ ...event, data: { total: event.data.total } }]
    }`
    const { body } = await post(`${path}/test`, { code, event: 'o1' })
    expect(body).toMatchObject({
      input: [{ id: 'o1', source: 'app', type: 'order.paid', subject: 'o/1', data: event.data }],
      output: [{ id: 'o1', data: { total: 42 } }],
      body: '{"total":42}',
      contentType: 'application/json',
      error: '',
      console: ['total 42'],
      ms: expect.any(Number),
    })
    expect(await app.endpoints.deliveries(id)).toMatchObject([])
    expect((await app.endpoints.get(id))?.transform).toBeNull()
  })

  test('a test takes the version that is used, another one, or an event of its own', async () => {
    const { post, path } = await scene(store)
    expect(await post(`${path}/test`)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    await post(path, { code: coded('one') })
    await post(path, { code: coded('two') })
    expect((await post(`${path}/test`)).body).toMatchObject({ body: expect.stringMatching(/^two/), error: '' })
    expect((await post(`${path}/test`, { version: 1 })).body).toMatchObject({ body: expect.stringMatching(/^one/) })
    const sample = { type: 'order.lost', data: [1] }
    const code = 'export default ([{ type, data }]) => ({ body: { type, data } })'
    expect((await post(`${path}/test`, { code, sample })).body).toMatchObject({ body: JSON.stringify(sample) })
  })

  test('a test that fails says why and where, with what was written before', async () => {
    const { post, path } = await scene(store)
    const code = `export default (events) => {\n  console.log('here')\n  return events.none.map(String)\n}`
    const { status, body } = await post(`${path}/test`, { code })
    expect([status, body]).toMatchObject([
      200,
      { error: expect.stringMatching(/^transform-failed: TypeError: .* \(line 3\)$/), line: 3, console: ['here'] },
    ])
    expect(body).not.toHaveProperty('body')
    const skips = (await post(`${path}/test`, { code: 'export default () => []' })).body
    expect(skips).toMatchObject({ output: [], error: '' })
    expect(skips).not.toHaveProperty('body')
    const wrong = (await post(`${path}/test`, { code: 'export default () => 1' })).body
    expect(wrong).toMatchObject({ output: 1, error: expect.stringContaining('it returned a number') })
  })

  test('a test shows neither an event of another tenant nor the key of an integration', async () => {
    const { t, app, post, path } = await scene(store, { tenant: 'acme' })
    await t.send({ id: 'theirs', type: 'order.paid', tenant: 'other', data: 1 })
    const code = coded('x')
    expect(await post(`${path}/test`, { code, event: 'theirs' })).toMatchObject({ status: 404 })
    const secret = 'a1'.repeat(16)
    const fields = { url: 'https://events.pagerduty.com/v2/enqueue', form: 'pagerduty', secret } as const
    const { id } = await app.endpoints.create(fields)
    const { body } = await post(`${PATH}/${id}/transform/test`, { code: 'export default (events) => events' })
    expect(body).toMatchObject({ error: '', body: expect.stringContaining('routing_key') })
    expect(JSON.stringify(body)).not.toContain(secret)
  })

  test('changes need the role operate and are in the audit log, and the token of the subscriber opens none', async () => {
    const { app, get, call, path, id } = await scene(store)
    const { secret: operate } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
    const { secret: read } = await app.admin.keys.create({ name: 'bob', role: 'read' })
    const { token } = await app.endpoints.createToken(id)
    const body = { code: coded('one') }
    for (const key of [read, token]) {
      expect((await call('POST', path, { key, body })).status).toBe(403)
      expect((await call('POST', `${path}/test`, { key, body })).status).toBe(403)
      expect((await call('DELETE', path, { key })).status).toBe(403)
    }
    expect((await get(path, { key: token })).status).toBe(403)
    expect((await get(path, { key: read })).status).toBe(200)
    await call('POST', path, { key: operate, body })
    await call('POST', `${path}/test`, { key: operate, body: {} })
    await call('DELETE', path, { key: operate })
    const { items } = await app.admin.audit.list()
    const noted = items.filter(({ who }) => who === 'ada').map(({ what }) => what)
    expect(noted).toContain(`set the transformation of endpoint ${id} to version 1`)
    expect(noted).toContain(`removed the transformation of endpoint ${id}`)
    expect(noted.join('\n')).toContain(`test a transformation of the subscriber ${id}`)
  })

  test('a deleted endpoint leaves no code behind', async () => {
    const { app, post, path, id } = await scene(store)
    await post(path, { code: coded('one') })
    await app.endpoints.delete(id)
    expect((await post(`${path}/test`)).status).toBe(404)
  })
})
