// The audit log and the keys over the API: a day of two operators, and what can be seen of it afterwards.
import { describe, expect, test } from 'vitest'
import { rig, START, STORES, type Answer, type Rig } from './rig.ts'

interface Made {
  readonly id: string
  readonly secret: string
}

interface Entries {
  readonly items: readonly { readonly who: string; readonly what: string }[]
}

const made = async (r: Rig, name: string, role: string, key?: string): Promise<Made> => {
  const { status, body } = await r.post('/v1/keys', { name, role }, key === undefined ? {} : { key })
  expect([name, status]).toEqual([name, 200])
  return body
}

describe.each(STORES)('audit and keys on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, (app) => app.flow('f', { on: 'ping', run: () => {} }))

  test('the first key is made from the machine itself; from then on one is needed', async () => {
    const r = await opened()
    const { secret } = await made(r, 'ada', 'operate')
    expect((await r.post('/v1/keys', { name: 'bob', role: 'read' })).status).toBe(401)
    const bob = await made(r, 'bob', 'read', secret)
    const { body } = await r.get('/v1/keys', { key: bob.secret })
    const { items } = body as { readonly items: readonly { readonly name: string }[] }
    expect(items.toSorted((one, other) => one.name.localeCompare(other.name))).toMatchObject([
      { name: 'ada', role: 'operate', by: 'loopback', made: START },
      { name: 'bob', role: 'read', by: 'ada' },
    ])
    for (const hidden of [secret, bob.secret]) expect(JSON.stringify(body)).not.toContain(hidden.slice(-43))
  })

  test('a key that may read makes none, and revokes none', async () => {
    const r = await opened()
    const ada = await made(r, 'ada', 'operate')
    const { secret: key } = await made(r, 'bob', 'read', ada.secret)
    expect((await r.post('/v1/keys', { name: 'eve', role: 'operate' }, { key })).status).toBe(403)
    expect((await r.call('DELETE', `/v1/keys/${ada.id}`, { key })).status).toBe(403)
    expect(await r.app.keys.list()).toHaveLength(2)
  })

  test('revoked by id or by name, it opens nothing any more', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    const bob = await made(r, 'bob', 'operate', key)
    await made(r, 'eve', 'operate', key)
    expect((await r.call('DELETE', `/v1/keys/${bob.id}`, { key })).body).toEqual({ result: 'ok' })
    expect((await r.call('DELETE', '/v1/keys/eve', { key })).body).toEqual({ result: 'ok' })
    expect((await r.call('DELETE', '/v1/keys/eve', { key })).status).toBe(404)
    expect((await r.get('/v1/flows', { key: bob.secret })).status).toBe(401)
  })

  test.each([
    { name: 'ada' },
    { role: 'read' },
    { name: '', role: 'read' },
    { name: ' ada', role: 'read' },
    { name: 'ada\n', role: 'read' },
    { name: 'x'.repeat(101), role: 'read' },
    { name: 'ada', role: 'admin' },
    { name: 'ada', role: 'read', by: 'somebody else' },
  ])('refuses to make %j', async (body) => {
    const r = await opened()
    expect((await r.post('/v1/keys', body)).status).toBe(400)
    expect(await r.app.keys.list()).toEqual([])
  })

  test('of two keys of one name that are asked for at once, one is made; revoked, the name is free', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    const ask = (): Promise<Answer> => r.post('/v1/keys', { name: 'bob', role: 'read' }, { key })
    const statuses = (await Promise.all([ask(), ask(), ask()])).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 400)).toHaveLength(2)
    expect(await r.app.keys.list()).toHaveLength(2)
    await r.call('DELETE', '/v1/keys/bob', { key })
    expect((await ask()).status).toBe(200)
  })

  test('two keys of one name would be one person in the log', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    expect((await r.post('/v1/keys', { name: 'ada', role: 'read' }, { key })).status).toBe(400)
  })

  test('every act is there, newest first, by time, and the chain is whole; no secret is in it', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    await r.t.advance('1m')
    await r.post('/v1/flows/f/pause', { reason: 'deploy' }, { key })
    await r.t.advance('1m')
    await r.post('/v1/flows/f/resume', {}, { key })
    const entries = async (query: string): Promise<readonly unknown[]> => {
      const { items } = (await r.get(`/v1/audit?${query}`, { key })).body as Entries
      return items.map(({ who, what }) => `${who}: ${what}`)
    }
    expect(await entries('')).toEqual([
      'ada: resumed the flow f',
      'ada: paused the flow f: deploy',
      'loopback: made the key ada of the role operate',
      'loopback: asked for a key named ada of the role operate',
    ])
    expect(await entries(`from=${START + 60_000}&to=${START + 120_000}`)).toEqual(['ada: paused the flow f: deploy'])
    expect((await r.get('/v1/audit/verify', { key })).body).toEqual({ kind: 'whole', entries: 4 })
    expect(JSON.stringify((await r.get('/v1/audit', { key })).body)).not.toContain(key)
  })
})
