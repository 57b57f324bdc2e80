// Sources over the API: where they take requests, what they refused and why, and a secret that is forgotten.
import { describe, expect, test } from 'vitest'
import { rig, STORES, type Rig } from './rig.ts'
import { APP_KEY, declare, order } from './seeded.ts'

const post = async (r: Rig, path: string, body: unknown): Promise<number> =>
  (await r.app.fetch(new Request(`http://hooks.test${path}`, { method: 'POST', body: JSON.stringify(body) }))).status

describe.each(STORES)('sources on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare, { encryptionKey: APP_KEY })

  test('are listed with the paths where they receive requests', async () => {
    const r = await opened()
    expect((await r.get('/v1/sources')).body).toMatchObject({
      items: [
        { name: 'shop', scheme: 'bearer', path: '/in/shop' },
        { name: 'pages', scheme: 'notion', path: '/in/pages' },
        { name: 'hooks', scheme: 'github', path: '/in/hooks' },
      ],
    })
  })

  test('refused requests are shown with the reason, and without the secret that was tried', async () => {
    const r = await opened()
    expect(await order(r.app, 'wrong-token-0123', { n: 1 })).toBe(401)
    const { body } = await r.get('/v1/sources/shop/refused')
    expect(body).toMatchObject({
      items: [{ source: 'shop', code: 'CREDENTIALS_WRONG', method: 'POST', path: '/in/shop' }],
    })
    expect(JSON.stringify(body)).not.toContain('wrong-token')
    expect((await r.get('/v1/sources/pages/refused')).body).toEqual({ items: [] })
  })

  test('requests to an unknown source are listed under -', async () => {
    const r = await opened()
    expect(await post(r, '/in/nobody', {})).toBe(404)
    expect((await r.get('/v1/sources/-/refused')).body).toMatchObject({ items: [{ path: '/in/nobody' }] })
  })

  test('a secret that came by handshake can be forgotten, and the audit log names who did it', async () => {
    const r = await opened()
    const shake = (): Promise<number> => post(r, '/in/pages', { verification_token: 'secret_one' })
    expect((await r.post('/v1/sources/pages/forget-secret')).body).toEqual({ result: 'none' })
    expect(await shake()).toBe(200)
    expect(await shake()).toBe(403)
    expect((await r.post('/v1/sources/pages/forget-secret')).body).toEqual({ result: 'forgotten' })
    expect(await shake()).toBe(200)
    expect((await r.app.admin.audit.list()).items).toMatchObject([
      { who: 'loopback', what: 'forget secret of source pages' },
    ])
  })

  test('a secret that came by handshake is shown to keys with the role operate; a configured secret is not', async () => {
    const r = await opened()
    expect((await r.post('/v1/sources/pages/show-secret')).body).toEqual({})
    await post(r, '/in/pages', { verification_token: 'secret_one' })
    expect((await r.post('/v1/sources/pages/show-secret')).body).toEqual({ secret: 'secret_one' })
    expect((await r.post('/v1/sources/shop/show-secret')).body).toEqual({})
    const { items } = await r.app.admin.audit.list()
    expect(items).toContainEqual(expect.objectContaining({ who: 'loopback', what: 'show secret of source pages' }))
    expect(JSON.stringify(items)).not.toContain('secret_one')
    await r.app.admin.keys.create({ name: 'operator', role: 'operate' })
    const { secret: key } = await r.app.admin.keys.create({ name: 'reader', role: 'read' })
    const refused = await r.post('/v1/sources/pages/show-secret', {}, { key })
    expect([refused.status, JSON.stringify(refused.body).includes('secret_one')]).toEqual([403, false])
  })

  test.each(['/v1/sources/nobody/refused', '/v1/sources/%20/refused'])('%s returns 404', async (path) => {
    const r = await opened()
    expect((await r.get(path)).status).toBe(404)
  })

  test('the secret of an unknown source cannot be forgotten', async () => {
    const r = await opened()
    expect((await r.post('/v1/sources/-/forget-secret')).status).toBe(404)
    expect((await r.post('/v1/sources/pages/forget-secret', { by: 'eve' })).status).toBe(400)
  })
})
