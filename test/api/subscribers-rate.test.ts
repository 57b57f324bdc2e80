// Tests how many endpoints may be registered per minute, by address and by key. More get 429 with Retry-After.
import { describe, expect, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { subscriber } from '../deliver/subscriber.ts'
import { rig, STORES, type Answer, type CallOptions, type Rig } from './rig.ts'
import { APP_KEY } from './seeded.ts'

const PATH = '/v1/webhooks/subscribers'

async function scene(store: string, registrations?: { rate: number; per: '1m' }): Promise<Rig> {
  const delivery = registrations === undefined ? {} : { delivery: { registrations } }
  return rig(store, (app) => app.delivery('versions', { on: 'version.*' }), { encryptionKey: APP_KEY, ...delivery })
}

function register(r: Rig, options: CallOptions = {}): Promise<Answer> {
  return r.post(PATH, { url: 'https://subscriber.example.com/hook' }, options)
}

describe.each(STORES)('on %s', (store) => {
  test('an address may register a bounded number per minute, and then gets Retry-After', async () => {
    const r = await scene(store, { rate: 3, per: '1m' })
    for (let n = 0; n < 3; n++) expect((await register(r)).status).toBe(200)
    const refused = await register(r)
    expect(refused).toMatchObject({ status: 429, body: { code: 'TOO_MANY_REQUESTS' } })
    const after = Number(refused.headers['retry-after'])
    expect(after).toBeGreaterThan(0)
    expect(after).toBeLessThanOrEqual(120)
    expect((await r.get(PATH)).body).toMatchObject({ items: [{}, {}, {}] })
    await r.t.advance(`${after}s`)
    expect((await register(r)).status).toBe(200)
  })

  test('the bound of a key counts over all addresses, and the bound of an address over all keys', async () => {
    const r = await scene(store, { rate: 2, per: '1m' })
    const [one, other] = [
      (await r.app.admin.keys.create({ name: 'one', role: 'operate' })).secret,
      (await r.app.admin.keys.create({ name: 'other', role: 'operate' })).secret,
    ]
    const statuses = async (...calls: readonly (readonly [string, string])[]): Promise<readonly number[]> => {
      const found: number[] = []
      for (const [key, address] of calls) found.push((await register(r, { key, address })).status)
      return found
    }
    expect(await statuses([one, '8.0.0.1'], [one, '8.0.0.2'], [one, '8.0.0.3'])).toEqual([200, 200, 429])
    expect(await statuses([other, '8.0.0.9'], [one, '8.0.0.9'], [other, '8.0.0.9'])).toEqual([200, 429, 429])
    expect((await r.get(PATH, { key: one, address: '8.0.0.9' })).status).toBe(200)
  })

  test('proving an endpoint and changing its url count too; other changes do not', async () => {
    const to = await subscriber(...Array.from({ length: 9 }, () => ({ status: 404 })))
    const delivery = { allowLoopback: true, proof: 'challenge', registrations: { rate: 3, per: '1m' } } as const
    const r = await rig(store, (app) => app.delivery('versions', { on: 'version.*' }), {
      encryptionKey: APP_KEY,
      delivery,
    })
    const { id } = (await r.post(PATH, { url: to.url })).body as { id: string }
    const change = async (body: object): Promise<number> => (await r.call('PATCH', `${PATH}/${id}`, { body })).status
    expect((await r.post(`${PATH}/${id}/prove`)).status).toBe(200)
    expect(await change({ url: `${to.url}/other` })).toBe(400)
    expect((await r.post(`${PATH}/${id}/prove`)).status).toBe(429)
    expect(await change({ url: `${to.url}/another`, name: 'Ada' })).toBe(429)
    expect(to.got).toHaveLength(3)
    for (const name of ['Ada', 'Bob', 'Cleo', 'Dan']) expect(await change({ name })).toBe(200)
  })

  test('test events have their own bound', async () => {
    const r = await scene(store, { rate: 2, per: '1m' })
    const statuses: number[] = []
    // The endpoint does not exist: the call counts all the same.
    for (let n = 0; n < 3; n++) statuses.push((await r.post(`${PATH}/ep_nobody/test`)).status)
    expect(statuses).toEqual([404, 404, 429])
    expect((await register(r)).status).toBe(200)
  })

  test('the default is sixty per minute', async () => {
    const r = await scene(store)
    for (let n = 0; n < 60; n++) expect((await register(r)).status).toBe(200)
    expect((await register(r)).status).toBe(429)
  })
})

test.each([
  { rate: 0, per: '1m' },
  { rate: 1, per: '0s' },
  { rate: Number.NaN, per: '1m' },
])('%o is refused', (registrations) => {
  expect(() => new Sluice({ store: 'memory:', delivery: { registrations: registrations as never } })).toThrow(
    'registrations',
  )
})
