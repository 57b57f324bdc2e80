// Tests the audit log and the keys over the API: a day of two operators, and what the log shows afterwards.
import { describe, expect, test, vi } from 'vitest'
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

  test('the first key is created locally without a key; from then on, a key is needed', async () => {
    const r = await opened()
    const { secret } = await made(r, 'ada', 'operate')
    expect((await r.post('/v1/keys', { name: 'bob', role: 'read' })).status).toBe(401)
    const bob = await made(r, 'bob', 'read', secret)
    const { body } = await r.get('/v1/keys', { key: bob.secret })
    const { items } = body as { readonly items: readonly { readonly name: string }[] }
    expect(items.toSorted((one, other) => one.name.localeCompare(other.name))).toMatchObject([
      { name: 'ada', role: 'operate', by: 'loopback', created: START },
      { name: 'bob', role: 'read', by: 'ada' },
    ])
    for (const hidden of [secret, bob.secret]) expect(JSON.stringify(body)).not.toContain(hidden.slice(-43))
  })

  test('a key with the role read can neither create nor revoke keys', async () => {
    const r = await opened()
    const ada = await made(r, 'ada', 'operate')
    const { secret: key } = await made(r, 'bob', 'read', ada.secret)
    expect((await r.post('/v1/keys', { name: 'eve', role: 'operate' }, { key })).status).toBe(403)
    expect((await r.call('DELETE', `/v1/keys/${ada.id}`, { key })).status).toBe(403)
    expect(await r.app.admin.keys.list()).toHaveLength(2)
  })

  test('a key can be revoked by id or by name, and then gives no access', async () => {
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
    { name: 'loopback', role: 'operate' },
    { name: 'Loopback', role: 'operate' },
  ])('refuses to make %j', async (body) => {
    const r = await opened()
    expect((await r.post('/v1/keys', body)).status).toBe(400)
    expect(await r.app.admin.keys.list()).toEqual([])
  })

  test('of two simultaneous requests for keys with one name, one succeeds; revoking it frees the name', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    const ask = (): Promise<Answer> => r.post('/v1/keys', { name: 'bob', role: 'read' }, { key })
    const statuses = (await Promise.all([ask(), ask(), ask()])).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 400)).toHaveLength(2)
    expect(await r.app.admin.keys.list()).toHaveLength(2)
    await r.call('DELETE', '/v1/keys/bob', { key })
    expect((await ask()).status).toBe(200)
  })

  test('the first key must have the role operate, and the last key with this role can only be revoked last', async () => {
    const r = await opened()
    const needed = {
      code: 'OPERATOR_KEY_REQUIRED',
      fix: expect.stringContaining('Create a key with the role operate first'),
    }
    const early = await r.post('/v1/keys', { name: 'bob', role: 'read' })
    expect([early.status, early.body]).toMatchObject([409, needed])
    const { secret: key } = await made(r, 'ada', 'operate')
    await made(r, 'bob', 'read', key)
    const last = await r.call('DELETE', '/v1/keys/ada', { key })
    expect([last.status, last.body]).toMatchObject([409, needed])
    expect((await r.call('DELETE', '/v1/keys/bob', { key })).status).toBe(200)
    expect((await r.call('DELETE', '/v1/keys/ada', { key })).status).toBe(200)
    expect((await r.post('/v1/flows/f/resume')).status).toBe(200)
  })

  test('simultaneous revocations cannot lock everybody out', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    await made(r, 'eve', 'operate', key)
    await made(r, 'bob', 'read', key)
    await Promise.allSettled(['ada', 'eve'].map((name) => r.app.admin.keys.revoke(name)))
    expect((await r.app.admin.keys.list()).filter(({ role }) => role === 'operate')).toHaveLength(1)
    await r.app.admin.keys.revoke('bob')
    const [left] = await r.app.admin.keys.list()
    await Promise.allSettled([
      r.app.admin.keys.create({ name: 'zoe', role: 'read' }),
      r.app.admin.keys.revoke(left?.id ?? ''),
    ])
    const roles = (await r.app.admin.keys.list()).map(({ role }) => role)
    expect(roles.length === 0 || roles.includes('operate')).toBe(true)
  })

  test('the log distinguishes actions that were not done, that failed, and that have no known outcome', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    await r.post('/v1/flows/f/resume', {}, { key })
    await r.post('/v1/dead-letters/drop', { flow: 'f' }, { key })
    const purge = vi.spyOn(r.app.admin, 'purge').mockRejectedValueOnce(new Error('The disk is gone.'))
    await r.post('/v1/purge', { tenant: 'acme' }, { key })
    purge.mockReturnValueOnce(new Promise(() => {}))
    void r.post('/v1/purge', { tenant: 'other' }, { key })
    const what = async (): Promise<readonly string[]> =>
      (await r.app.admin.audit.list()).items.map((entry) => entry.what)
    await expect.poll(what).toHaveLength(8)
    expect(await what()).toEqual([
      'requested: purge {"tenant":"other"}',
      'failed (API_FAILED), perhaps half done: purge {"tenant":"acme"}',
      'requested: purge {"tenant":"acme"}',
      'done (count 0): drop the dead letters of {"flow":"f"}',
      'requested: drop the dead letters of {"flow":"f"}',
      'not done (already): resume the flow f',
      'requested: resume the flow f',
      'created the key ada with the role operate',
    ])
  })

  test('verify returns the head of the log, and accepts a head that was stored elsewhere', async () => {
    const r = await opened()
    expect((await r.get('/v1/audit/verify')).body).toEqual({ kind: 'whole', entries: 0 })
    const verified = async (query = ''): Promise<{ head: { chain: string } }> =>
      (await r.get(`/v1/audit/verify${query}`)).body
    await r.post('/v1/flows/f/resume')
    const { head } = await verified()
    expect(head).toMatchObject({ id: 2, chain: (await r.app.admin.audit.list()).items[0]?.chain })
    await r.post('/v1/flows/f/resume')
    expect(await verified(`?head=${head.chain}`)).toMatchObject({ kind: 'whole', entries: 4, head: { id: 4 } })
    expect(await verified(`?head=${'A'.repeat(43)}`)).toMatchObject({ kind: 'broken', why: 'unknown' })
    expect((await r.get('/v1/audit/verify?head=A')).status).toBe(400)
  })

  test('two keys cannot have the same name, because the log could not tell them apart', async () => {
    const r = await opened()
    const { secret: key } = await made(r, 'ada', 'operate')
    expect((await r.post('/v1/keys', { name: 'ada', role: 'read' }, { key })).status).toBe(400)
  })

  test('every action is listed, newest first, with its time; the chain is whole and contains no secret', async () => {
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
      'ada: done (ok): resume the flow f',
      'ada: requested: resume the flow f',
      'ada: done (ok): pause the flow f: deploy',
      'ada: requested: pause the flow f: deploy',
      'loopback: created the key ada with the role operate',
    ])
    expect(await entries(`from=${START + 60_000}&to=${START + 120_000}`)).toEqual([
      'ada: done (ok): pause the flow f: deploy',
      'ada: requested: pause the flow f: deploy',
    ])
    expect((await r.get('/v1/audit/verify', { key })).body).toMatchObject({ kind: 'whole', entries: 5 })
    expect(JSON.stringify((await r.get('/v1/audit', { key })).body)).not.toContain(key)
  })
})
