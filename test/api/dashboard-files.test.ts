// Tests how the dashboard is served: its files, its mounts and the headers that keep anything foreign out of the page.
import { gunzipSync, brotliDecompressSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { request } from 'node:http'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import { unverified } from '../../src/sources/index.ts'

function appOf(options: Partial<SluiceOptions> = {}): Sluice {
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  onTestFinished(() => app.stop())
  return app
}

async function urlOf(options: Partial<SluiceOptions> = {}): Promise<string> {
  return (await appOf(options).listen({ port: 0 })).url
}

const pageAt = async (url: string): Promise<string> => {
  const answer = await fetch(url)
  expect([url, answer.status, answer.headers.get('content-type')]).toEqual([url, 200, 'text/html; charset=utf-8'])
  return answer.text()
}

/** The address that the page at `url` has for its first script. */
function scriptOf(url: string, page: string): string {
  const base = /<base href="([^"]*)" \/>/.exec(page)?.[1] ?? 'none'
  const script = /<script[^>]* src="([^"]+)"/.exec(page)?.[1] ?? 'none'
  return new URL(script, new URL(base, url)).href
}

test.each(['/', '/dashboard', '/dashboard/'])('%s leads to the page of the dashboard', async (path) => {
  const url = await urlOf()
  const answer = await fetch(url + path)
  expect([answer.url, answer.status]).toEqual([`${url}/dashboard/`, 200])
  expect(await answer.text()).toContain('<div id="app">')
})

test.each(['/', '/dashboard'])('the redirect of %s is relative, so that it survives a prefix', async (path) => {
  const answer = await fetch((await urlOf()) + path, { redirect: 'manual' })
  expect([answer.status, answer.headers.get('location')]).toEqual([307, 'dashboard/'])
})

test.each(['', 'lanes', 'lanes/abc', 'events/a/b/c', 'lanes//', 'index.html'])(
  'the page at %j finds its script below the mount',
  async (path) => {
    const url = await urlOf()
    const script = scriptOf(`${url}/dashboard/${path}`, await pageAt(`${url}/dashboard/${path}`))
    expect(script).toMatch(/\/dashboard\/assets\/[\w-]+\.js$/)
    expect(script.startsWith(`${url}/dashboard/assets/`)).toBe(true)
    const answer = await fetch(script)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  },
)

test('the page allows only what comes from its own origin, and no inline code', async () => {
  const url = await urlOf()
  const answer = await fetch(`${url}/dashboard/`)
  const policy = answer.headers.get('content-security-policy') ?? ''
  expect(policy.split('; ').toSorted()).toEqual([
    "base-uri 'self'",
    "connect-src 'self'",
    "default-src 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
  ])
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'same-origin',
  })
  const page = await answer.text()
  expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style="/)
  expect(page).not.toMatch(/(?:src|href)="(?:https?:|\/\/|data:)/)
})

test('the page is checked again at each visit; its files are kept for a year', async () => {
  const url = await urlOf()
  const page = await fetch(`${url}/dashboard/lanes`)
  expect(page.headers.get('cache-control')).toBe('no-cache')
  const asset = await fetch(scriptOf(`${url}/dashboard/lanes`, await page.text()))
  expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  const again = await fetch(asset.url, { headers: { 'if-none-match': `W/${asset.headers.get('etag')}` } })
  expect([again.status, await again.text()]).toEqual([304, ''])
})

test.each([
  ['br, gzip', 'br', brotliDecompressSync],
  ['gzip;q=0.5, br;q=0', 'gzip', gunzipSync],
  ['identity', undefined, (bytes: Buffer) => bytes],
] as const)('a client that accepts %j gets %s', async (accepted, encoding, decode) => {
  const url = await urlOf()
  const script = scriptOf(`${url}/dashboard/`, await pageAt(`${url}/dashboard/`))
  const plain = Buffer.from(await (await fetch(script)).arrayBuffer())
  const { headers, body } = await fetchRaw(script, { 'accept-encoding': accepted })
  expect(headers['content-encoding']).toBe(encoding)
  expect(headers['vary']).toBe('accept-encoding')
  expect(Number(headers['content-length'])).toBe(body.length)
  expect(decode(body).equals(plain)).toBe(true)
})

test.each([
  ['GET', '/dashboard/assets/none.js', 404],
  ['GET', '/dashboard/assets/../../../package.json', 400],
  ['GET', '/dashboard/assets/..%2f..%2fpackage.json', 404],
  ['GET', '/dashboard/v1/none', 401],
  ['POST', '/dashboard/', 405],
  ['GET', '/dashboards', 404],
])('%s %s gets %i', async (method, path, status) => {
  const url = new URL(await urlOf())
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request({ host: url.hostname, port: url.port, path, method }, ({ statusCode }) => resolve(statusCode))
    sent.on('error', reject).end()
  })
  expect(answer).toBe(status)
})

test('dashboard: false serves neither the dashboard nor its API, and leaves / alone', async () => {
  const url = await urlOf({ dashboard: false })
  for (const path of ['/', '/dashboard', '/dashboard/', '/dashboard/v1/session']) {
    expect([path, (await fetch(url + path)).status]).toEqual([path, 404])
  }
  expect(() => new Sluice({ store: 'memory:', dashboard: 'no' as never })).toThrow(/dashboard must be true or false/)
})

test('a route of the app, or a source, at / or /dashboard comes first', async () => {
  const app = appOf()
  app.route('GET', '/', () => new Response('home'))
  app.route('GET', '/dashboard', () => new Response('theirs'))
  app.source('root', unverified({ verify: 'none' }), { path: '/dashboard/hook' })
  const { url } = await app.listen({ port: 0 })
  expect(await (await fetch(`${url}/`)).text()).toBe('home')
  expect(await (await fetch(`${url}/dashboard`)).text()).toBe('theirs')
  expect((await fetch(`${url}/dashboard/hook`, { method: 'POST', body: '{"a":1}' })).status).toBe(202)
})

test('app.dashboard serves the dashboard at any mount of a host app', async () => {
  const app = appOf()
  const ask = (path: string, mount?: string): Promise<Response> =>
    app.dashboard(new Request(`https://host.example${path}`), mount === undefined ? {} : { mount })
  const page = await ask('/admin/hooks/lanes/x', '/admin/hooks')
  expect(scriptOf('https://host.example/admin/hooks/lanes/x', await page.text())).toMatch(
    /^https:\/\/host\.example\/admin\/hooks\/assets\//,
  )
  expect((await ask('/admin/hooks', '/admin/hooks/')).headers.get('location')).toBe('hooks/')
  expect((await ask('/lanes', '/')).status).toBe(200)
  expect((await ask('/dashboard/')).status).toBe(200)
  await expect(ask('/other', '/admin/hooks')).rejects.toThrow(
    /mount must be where the path of the request begins.*\/other/,
  )
  await expect(ask('/x', 'x')).rejects.toThrow(/mount must be a path/)
})

async function fetchRaw(
  url: string,
  headers: Record<string, string>,
): Promise<{ headers: NodeJS.Dict<string | string[]>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (answer) => {
      answer
        .toArray()
        .then((parts: Buffer[]) => resolve({ headers: answer.headers, body: Buffer.concat(parts) }))
        .catch(reject)
    })
    sent.on('error', reject).end()
  })
}
