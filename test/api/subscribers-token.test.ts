// Tests an endpoint's own token: an operator creates it, it is shown once, and it allows four calls on one endpoint. All other
// routes reject it.
import { describe, expect, test } from 'vitest'
import type { ApiRoute } from '../../src/api/route.ts'
import { ROUTES } from '../../src/api/routes/index.ts'
import { STORES, type Answer } from './rig.ts'
import { seeded, type Seeded } from './seeded.ts'

const PATH = '/v1/webhooks/subscribers'
const OPEN = ['listDeliveries', 'replaySubscriber', 'rotateSubscriberSecret', 'testSubscriber']
const codeOf = ({ status, body }: Answer): unknown[] => [status, (body as { code?: string }).code]

interface Scene extends Seeded {
  readonly mine: string
  readonly other: string
  readonly token: string
}

async function scene(store: string): Promise<Scene> {
  const r = await seeded(store)
  const [mine = '', other = ''] = (await r.app.endpoints.list()).map(({ id }) => id)
  const { token } = (await r.post(`${PATH}/${mine}/token`, {}, { key: r.operate })).body as { token: string }
  return { ...r, mine, other, token }
}

function pathOf({ path }: ApiRoute, id: string): string {
  return path.replace('{id}', id).replaceAll(/\{\w+\}/g, 'nothing')
}

/** An unknown parameter makes every allowed call fail, so that only the access check has an effect. */
async function call(r: Scene, route: ApiRoute, id: string): Promise<Answer> {
  return r.call(route.method, `${pathOf(route, id)}?colour=red`, {
    key: r.token,
    ...(route.method !== 'GET' && { body: {} }),
  })
}

describe.each(STORES)('on %s', (store) => {
  test('allows four routes of its own endpoint, and no other route', async () => {
    const r = await scene(store)
    const { items: before } = await r.app.admin.audit.list()
    const open: string[] = []
    for (const route of ROUTES) {
      const answer = await call(r, route, r.mine)
      if (answer.status === 403) expect([route.name, ...codeOf(answer)]).toEqual([route.name, 403, 'TOKEN_NOT_ALLOWED'])
      else open.push(route.name)
    }
    expect(open.toSorted()).toEqual(OPEN)
    expect((await r.app.admin.audit.list()).items).toEqual(before)
  })

  test('gives no access to other endpoints, existing or not', async () => {
    const r = await scene(store)
    for (const route of ROUTES.filter(({ path }) => path.includes('{id}'))) {
      for (const id of [r.other, 'ep_nothing', `${r.mine}x`]) {
        expect([route.name, ...codeOf(await call(r, route, id))]).toEqual([route.name, 403, 'TOKEN_NOT_ALLOWED'])
      }
    }
  })

  test('gives no access to the document, the metrics or the stream', async () => {
    const r = await scene(store)
    const headers = { authorization: `Bearer ${r.token}` }
    expect((await r.app.fetch(new Request('http://api.test/v1/stream', { headers }))).status).toBe(403)
    for (const path of ['/openapi.json', '/metrics']) {
      expect(codeOf(await r.get(path, { key: r.token }))).toEqual([403, 'TOKEN_NOT_ALLOWED'])
    }
  })

  test('lets its holder list deliveries, rotate the secret, test and replay, under its own name in the audit log', async () => {
    const r = await scene(store)
    const as = { key: r.token }
    expect((await r.get(`${PATH}/${r.mine}/deliveries`, as)).status).toBe(200)
    expect((await r.post(`${PATH}/${r.mine}/rotate-secret`, {}, as)).body).toMatchObject({ id: r.mine })
    expect((await r.post(`${PATH}/${r.mine}/test`, {}, as)).body).toMatchObject({ delivered: false })
    expect((await r.post(`${PATH}/${r.mine}/replay`, {}, as)).body).toEqual({ count: 0 })
    const { items } = await r.app.admin.audit.list()
    const acts = items.filter(({ who }) => who === `subscriber:${r.mine}`).map(({ what }) => what)
    expect(acts).toContain(`rotated the secret of endpoint ${r.mine}`)
    expect(acts).toContain(`requested: test the subscriber ${r.mine}`)
    expect(acts).toContain(`requested: replay all to the subscriber ${r.mine}`)
    expect(JSON.stringify(items)).not.toContain(r.token)
  })

  test('allows 30 actions per hour, so that the audit log stays bounded; reads are not limited by it', async () => {
    const r = await scene(store)
    const as = { key: r.token }
    const before = (await r.app.admin.audit.list({}, '', 1_000)).items.length
    const answers = new Map<number, number>()
    for (let n = 0; n < 100; n++) {
      const path = ['replay', 'rotate-secret', 'test'][n % 3] ?? ''
      const { status, headers } = await r.post(`${PATH}/${r.mine}/${path}`, {}, as)
      answers.set(status, (answers.get(status) ?? 0) + 1)
      if (status === 429) expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(answers.get(429)).toBe(70)
    const { items } = await r.app.admin.audit.list({}, '', 1_000)
    expect(items.length - before).toBeLessThanOrEqual(2 * 30)
    expect((await r.get(`${PATH}/${r.mine}/deliveries`, as)).status).toBe(200)
    expect((await r.post(`${PATH}/${r.mine}/replay`, {}, { key: r.operate })).status).toBe(200)
    await r.t.advance('2h')
    expect((await r.post(`${PATH}/${r.mine}/replay`, {}, as)).status).toBe(200)
  })

  test('cannot replay dead letters of other endpoints', async () => {
    const r = await scene(store)
    const [deadLetter] = (await r.app.admin.deadLetters.list()).items
    const answer = await r.post(`${PATH}/${r.mine}/replay`, { deadLetter: deadLetter?.id }, { key: r.token })
    expect(codeOf(answer)).toEqual([404, 'NOT_FOUND'])
    expect((await r.app.admin.deadLetters.list()).items[0]).toMatchObject({ id: deadLetter?.id, state: 'dead' })
  })

  test('ends when another one is created, when it is revoked, and with its endpoint', async () => {
    const r = await scene(store)
    const mayLook = async (key: string): Promise<number> =>
      (await r.get(`${PATH}/${r.mine}/deliveries`, { key })).status
    const { token: next } = await r.app.endpoints.createToken(r.mine)
    expect([await mayLook(r.token), await mayLook(next)]).toEqual([401, 200])
    expect((await r.call('DELETE', `${PATH}/${r.mine}/token`, { key: r.operate })).body).toEqual({ result: 'ok' })
    expect(await mayLook(next)).toBe(401)
    expect((await r.call('DELETE', `${PATH}/${r.mine}/token`, { key: r.operate })).status).toBe(404)
    const { token: last } = await r.app.endpoints.createToken(r.mine)
    await r.app.endpoints.delete(r.mine)
    expect(await mayLook(last)).toBe(401)
    await expect(r.app.endpoints.createToken(r.mine)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('is rejected with one changed character', async () => {
    const r = await scene(store)
    for (const at of [4, r.token.length - 1]) {
      const other = r.token[at] === 'A' ? 'B' : 'A'
      const wrong = `${r.token.slice(0, at)}${other}${r.token.slice(at + 1)}`
      expect(codeOf(await r.get(`${PATH}/${r.mine}/deliveries`, { key: wrong }))).toEqual([401, 'KEY_INVALID'])
    }
  })
})
