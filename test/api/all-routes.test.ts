// Tests what is true of every route: the role it requires, what it rejects, and that its pages add up to the list.
import { describe, expect, test } from 'vitest'
import type { ApiRoute } from '../../src/api/route.ts'
import { ROUTES } from '../../src/api/routes/index.ts'
import { STORES, type Answer } from './rig.ts'
import { seeded } from './seeded.ts'

const codeOf = ({ status, body }: Answer): unknown[] => [status, (body as { code?: string }).code]

/** A path of the route, with names that do not exist. */
const pathOf = ({ path }: ApiRoute): string => path.replace('{id}', 'a'.repeat(22)).replaceAll(/\{\w+\}/g, 'nothing')

const titled = ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const)

describe.each(STORES)('every route on %s', (store) => {
  test('needs a key once one exists', async () => {
    const r = await seeded(store)
    for (const [title, route] of titled) {
      expect([title, ...codeOf(await r.call(route.method, pathOf(route)))]).toEqual([title, 401, 'KEY_MISSING'])
    }
  })

  test('that changes something rejects a key with the role read, and adds no audit entry', async () => {
    const r = await seeded(store)
    const { items: before } = await r.app.admin.audit.list()
    const acts = titled.filter(([, { role }]) => role === 'operate')
    expect(acts.length).toBeGreaterThan(15)
    for (const [title, route] of acts) {
      const answer = await r.call(route.method, pathOf(route), { key: r.read, body: {} })
      expect([title, ...codeOf(answer)]).toEqual([title, 403, 'ROLE_TOO_LOW'])
    }
    expect((await r.app.admin.audit.list()).items).toEqual(before)
  })

  test('that reads accepts both roles, and adds no audit entry', async () => {
    const r = await seeded(store)
    const { items: before } = await r.app.admin.audit.list()
    for (const [title, route] of titled.filter(([, { role }]) => role === 'read')) {
      const statuses = [r.read, r.operate].map(async (key) => (await r.call('GET', pathOf(route), { key })).status)
      for (const status of await Promise.all(statuses))
        expect([title, [200, 400, 404]]).toEqual([title, expect.arrayContaining([status])])
    }
    expect((await r.app.admin.audit.list()).items).toEqual(before)
  })

  test('rejects unknown parameters and fields', async () => {
    const r = await seeded(store)
    for (const [title, route] of titled) {
      const key = r.operate
      const asked = await r.call(route.method, `${pathOf(route)}?colour=red`, { key })
      expect([title, ...codeOf(asked)]).toEqual([title, 400, 'REQUEST_INVALID'])
      if (route.method === 'GET') continue
      for (const body of [{ colour: 'red' }, [], 'null', '"text"', '{']) {
        const told = await r.call(route.method, pathOf(route), { key, body })
        expect([title, body, ...codeOf(told)]).toEqual([title, body, 400, 'REQUEST_INVALID'])
      }
    }
  })

  test('that names an object returns 404 if it does not exist', async () => {
    const r = await seeded(store)
    for (const [title, route] of titled.filter(([, { path }]) => path.includes('{'))) {
      const body = { reason: 'x', for: '1s' }
      const fitting = route.method === 'GET' ? {} : { body: route.body.safeParse(body).success ? body : fit(route) }
      const answer = await r.call(route.method, pathOf(route), { key: r.operate, ...fitting })
      expect([title, ...codeOf(answer)]).toEqual([title, 404, 'NOT_FOUND'])
    }
  })
})

/** Returns the smallest body that the route accepts. */
function fit({ body }: ApiRoute): object {
  const one = [{}, { reason: 'x' }, { from: 'backlog' }].find((given) => body.safeParse(given).success)
  if (one === undefined) throw new Error('The route takes another body.')
  return one
}

test('exactly the routes that are not GET need the role operate, except the one that publishes', () => {
  const wrong = titled.filter(([, { method, role }]) => (method === 'GET') !== (role === 'read') || role === 'publish')
  expect(wrong.map(([title, { role }]) => [title, role])).toEqual([['POST /v1/events', 'publish']])
})

const PAGED = ROUTES.filter((route) => route.method === 'GET' && 'cursor' in route.query.shape)

interface Listed {
  readonly items: readonly Record<string, unknown>[]
  readonly next?: string
}

describe.each(STORES)('pages on %s', (store) => {
  test.each(PAGED.map((route) => [route.path]))('of %s add up to the whole list', async (path) => {
    const r = await seeded(store)
    const ask = async (query: string): Promise<Listed> => (await r.get(`${path}?${query}`, { key: r.read })).body
    const whole = await ask('limit=100')
    expect(whole.next).toBeUndefined()
    expect(whole.items.length).toBeGreaterThan(1)
    for (const limit of [1, 2, whole.items.length]) {
      const items: unknown[] = []
      let next: string | undefined
      do {
        const cursor = next === undefined ? '' : `&cursor=${encodeURIComponent(next)}`
        const page = await ask(`limit=${limit}${cursor}`)
        expect(page.items.length).toBeLessThanOrEqual(limit)
        items.push(...page.items)
        next = page.next
      } while (next !== undefined)
      expect(items).toEqual(whole.items)
    }
  })
})
