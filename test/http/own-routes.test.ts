// `app.route`: routes of the app beside those of the server, which none of them can hide.
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

describe('a route of the app', () => {
  it('answers beside the sources, also below a path', async () => {
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

  it('of all there is does not hide what the server itself answers', async () => {
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

  it('that fails is answered 500, without saying why to a stranger', async () => {
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
  ])('is not declared as %s %s', (method, path) => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(() => app.route(method, path, () => new Response())).toThrow(/CONFIG_INVALID/)
  })
})
