// Tests keys with the role `register`: they create endpoints of their own tenant, and can do nothing else.
import { describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes/index.ts'
import { rig, STORES, type Rig } from './rig.ts'
import { APP_KEY } from './seeded.ts'

const PATH = '/v1/webhooks/subscribers'
const body = (more: object = {}): object => ({ url: 'https://example.com/hook', ...more })

describe.each(STORES)('keys with the role register on %s', (store) => {
  const opened = async (): Promise<{ readonly r: Rig; readonly key: string }> => {
    const r = await rig(store, (app) => app.delivery('versions', { on: 'version.*' }), { encryptionKey: APP_KEY })
    await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const { secret: key } = await r.app.admin.keys.create({ name: 'acme', role: 'register', tenant: 'acme' })
    return { r, key }
  }

  test('create endpoints of their own tenant only', async () => {
    const { r, key } = await opened()
    const made = await r.post(PATH, body(), { key })
    expect([made.status, made.body]).toMatchObject([200, { tenant: 'acme' }])
    expect((await r.post(PATH, body({ tenant: 'acme' }), { key })).status).toBe(200)
    const foreign = await r.post(PATH, body({ tenant: 'other' }), { key })
    expect([foreign.status, foreign.body]).toMatchObject([403, { code: 'TENANT_NOT_ALLOWED' }])
    expect((await r.app.endpoints.list()).map(({ tenant }) => tenant)).toEqual(['acme', 'acme'])
    expect((await r.app.admin.audit.list()).items.map(({ who }) => who)).toContain('acme')
  })

  test('can call no other route', async () => {
    const { r, key } = await opened()
    for (const { method, path, role } of ROUTES.filter((one) => one.role !== 'register')) {
      const address = path.replaceAll(/\{\w+\}/g, 'x')
      const { status } =
        method === 'GET' ? await r.get(address, { key }) : await r.call(method, address, { body: {}, key })
      expect([method, path, role, status]).toEqual([method, path, role, 403])
    }
    for (const path of ['/metrics', '/openapi.json']) expect((await r.get(path, { key })).status).toBe(403)
  })

  test('a tenant gets at most 100 endpoints by such keys', async () => {
    const { r, key } = await opened()
    for (let n = 0; n < 100; n++) await r.app.endpoints.create({ url: 'https://example.com/', tenant: 'acme' })
    const over = await r.post(PATH, body(), { key })
    expect([over.status, over.body]).toMatchObject([400, { code: 'ENDPOINT_INVALID' }])
  })

  test('need a tenant, and keys of other roles have none', async () => {
    const { r } = await opened()
    const { keys } = r.app.admin
    await expect(keys.create({ name: 'a', role: 'register' })).rejects.toThrow(/tenant must be text/)
    await expect(keys.create({ name: 'b', role: 'read', tenant: 'acme' })).rejects.toThrow(/role 'register' only/)
    expect((await keys.list()).find(({ name }) => name === 'acme')).toMatchObject({ role: 'register', tenant: 'acme' })
  })
})
