// Tests `app.route`: routes of the app beside those of the server, which they cannot hide.
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { problemOf, withGithub } from '../receive/scene.ts'
import { hook, listening } from './rig.ts'

const routes = (app: Sluice): unknown =>
  withGithub(app)
    .route(
      'GET',
      '/hello',
      (_request, { address }) => new Response(`hello ${address}`, { headers: { 'x-own': 'yes' } }),
    )
    .route(
      'POST',
      '/echo/*',
      async (request) => new Response(`${new URL(request.url).pathname} ${await request.text()}`),
    )
    .route('GET', '/broken', () => Promise.reject(new Error('a detail that is nobody’s business')))

function everything(app: Sluice): void {
  for (const method of ['GET', 'HEAD', 'POST']) app.route(method, '/*', () => new Response('a page', { status: 299 }))
}

async function countBody(request: Request): Promise<Response> {
  return new Response(String((await request.text()).length))
}

/** A body without a declared length. */
function streamed(n: number): RequestInit {
  return { body: new Blob(['x'.repeat(n)]).stream(), duplex: 'half' }
}

describe('a route of the app', () => {
  it('responds beside the sources, also below a path', async () => {
    const { url } = await listening({}, routes)
    const hello = await fetch(`${url}/hello`)
    expect([hello.status, hello.headers.get('x-own'), await hello.text()]).toEqual([200, 'yes', 'hello 127.0.0.1'])
    const echo = await fetch(`${url}/echo/a/b`, { method: 'POST', body: 'é' })
    expect(await echo.text()).toBe('/echo/a/b é')
    expect((await fetch(`${url}/hello/more`)).status).toBe(404)
    expect((await hook(url, '{}')).status).toBe(202)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  })

  it("on every path does not hide the server's own routes", async () => {
    const { url, app } = await listening({}, everything)
    const paths = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/v1/flows', '/v1/nothing']
    const answers = paths.map(async (path) => {
      const [served, mounted] = [await fetch(url + path), await app.fetch(new Request(url + path))]
      await served.text()
      return [path, served.status, mounted.status]
    })
    expect(await Promise.all(answers)).toEqual([
      ['/healthz', 200, 200],
      ['/readyz', 200, 200],
      ['/metrics', 401, 401],
      ['/openapi.json', 401, 401],
      ['/v1/flows', 401, 401],
      ['/v1/nothing', 401, 401],
    ])
    expect((await app.fetch(new Request(`${url}/v1/stream`))).status).toBe(401)
    expect((await fetch(`${url}/v1/flows/f/pause`, { method: 'POST' })).status).toBe(401)
    expect((await fetch(`${url}/page`)).status).toBe(299)
  })

  it('that fails gets a 500 without the reason', async () => {
    const { url } = await listening({}, routes)
    const warned = once(process, 'warning')
    const response = await fetch(`${url}/broken`)
    expect(response.status).toBe(500)
    expect(JSON.stringify(await problemOf(response))).not.toContain('business')
    expect(String((await warned)[0])).toContain('business')
    expect((await hook(url, '{}')).status).toBe(202)
  })

  it.each([
    ['get', '/a'],
    ['GET', 'a'],
    ['GET', '/a*b'],
    ['GET', '/a?b'],
    ['GET', '/:'],
    ['GET', '/:1st'],
    ['GET', '/:id/b/:id'],
    ['POST', '/v1/alerts'],
    ['POST', '/v1/*'],
    ['GET', '/healthz'],
    ['GET', '/metrics'],
  ])('is not declared as %s %s', (method, path) => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(() => app.route(method, path, () => new Response())).toThrow(/CONFIG_INVALID/)
  })

  it('has the parameters of its path, decoded', async () => {
    const { url } = await listening({}, (app) =>
      withGithub(app)
        .route('GET', '/alerts/:id', (_request, { params }) => Response.json(params))
        .route('GET', '/spaces/:space/alerts/:id/test', (_request, { params: { space, id } }) =>
          Response.json({ space, id }),
        )
        .route('GET', '/a.b/:_x/*', (_request, { params }) => Response.json(params)),
    )
    const get = async (path: string): Promise<unknown> => {
      const response = await fetch(url + path)
      return response.status === 200 ? await response.json() : response.status
    }
    expect(await get('/alerts/7')).toEqual({ id: '7' })
    expect(await get('/alerts/a%2Fb%20%C3%A9')).toEqual({ id: 'a/b é' })
    expect(await get('/spaces/s/alerts/__proto__/test')).toEqual({ space: 's', id: '__proto__' })
    expect(await get('/a.b/1/2/3')).toEqual({ _x: '1' })
    for (const path of ['/alerts/', '/alerts/7/8', '/alerts/%FF', '/aXb/1/2']) expect(await get(path)).toBe(404)
  })

  it('responds to another method with the methods that it has', async () => {
    const { url } = await listening({}, (app) =>
      app.route('GET', '/alerts/:id', () => new Response()).route('DELETE', '/alerts/:id', () => new Response()),
    )
    const response = await fetch(`${url}/alerts/7`, { method: 'PATCH', body: '{}' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, DELETE'])
    expect(await problemOf(response)).toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  })

  it('rejects a body above its maxBody, with and without a declared length', async () => {
    const { url, app } = await listening({}, (one) =>
      one
        .route('POST', '/small', countBody, { maxBody: 10 })
        .route('POST', '/usual', countBody)
        .route('POST', '/any', countBody, { maxBody: Infinity }),
    )
    const status = async (path: string, init: RequestInit): Promise<readonly number[]> => {
      const given = { method: 'POST', ...init }
      const responses = [await fetch(url + path, given)]
      if (typeof init.body === 'string') responses.push(await app.fetch(new Request(url + path, given)))
      return responses.map((response) => response.status)
    }
    expect(await status('/small', { body: 'x'.repeat(10) })).toEqual([200, 200])
    expect(await status('/small', { body: 'x'.repeat(11) })).toEqual([413, 413])
    expect(await status('/small', streamed(10))).toEqual([200])
    expect(await status('/small', streamed(11))).toEqual([413])
    expect(await status('/usual', streamed(1024 * 1024))).toEqual([200])
    expect(await status('/usual', streamed(1024 * 1024 + 1))).toEqual([413])
    expect(await status('/any', streamed(1024 * 1024 + 1))).toEqual([200])
    const refused = await fetch(`${url}/small`, { method: 'POST', body: 'x'.repeat(11) })
    expect(await problemOf(refused)).toMatchObject({ code: 'BODY_TOO_LARGE' })
  })

  it('with a role needs an API key that has it', async () => {
    const { url, app } = await listening({}, (one) =>
      one
        .route('GET', '/page', (_request, { caller }) => new Response(caller), { role: 'read' })
        .route('POST', '/alerts/:id', () => new Response('changed'), { role: 'operate' }),
    )
    const operator = await app.admin.keys.create({ name: 'operator', role: 'operate' })
    const reader = await app.admin.keys.create({ name: 'reader', role: 'read' })
    const call = async (method: string, path: string, key?: string): Promise<unknown> => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const response = await fetch(url + path, { method, headers })
      return [response.status, response.ok ? await response.text() : ((await response.json()) as { code: string }).code]
    }
    expect(await call('GET', '/page')).toEqual([401, 'KEY_MISSING'])
    expect(await call('GET', '/page', 'wrong')).toEqual([401, 'KEY_INVALID'])
    expect(await call('GET', '/page', reader.secret)).toEqual([200, 'reader'])
    expect(await call('POST', '/alerts/7', reader.secret)).toEqual([403, 'ROLE_TOO_LOW'])
    expect(await call('POST', '/alerts/7', operator.secret)).toEqual([200, 'changed'])
    const mounted = await app.fetch(new Request(`${url}/page`))
    expect(mounted.status).toBe(401)
  })

  it.each([{ role: 'admin' }, { maxBody: -1 }, { maxBody: 1.5 }, { limit: 1 }])('does not take %j', (options) => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(() => app.route('GET', '/a', () => new Response(), options as never)).toThrow(/CONFIG_INVALID/)
  })
})
