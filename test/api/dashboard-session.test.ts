// Tests who may use the dashboard: sign-in by key, the cookie and where it counts, the host app's own sign-in, and roles.
import { expect, onTestFinished, test } from 'vitest'
import { openStore, Sluice, type DashboardContext } from '../../src/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const STORES = ['memory:', 'sqlite::memory:'] as const

interface Served {
  readonly app: Sluice
  readonly clock: VirtualClock
  readonly url: string
  ask(method: string, path: string, options?: Asked): Promise<Answer>
}

interface Asked {
  readonly body?: unknown
  readonly cookie?: string
  readonly headers?: Record<string, string>
  readonly context?: DashboardContext
}

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly cookie: string
  readonly headers: Headers
}

/** Asks through `app.dashboard` at the default mount, as a page of the same origin does. */
async function served(store: string, open = false): Promise<Served> {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1))
  const app = new Sluice({ store, log: false, clock, ...(open && { admin: { open: 'loopback' } }) })
  onTestFinished(() => app.stop())
  app.flow('f', { on: 'ping', run: () => {} })
  const url = 'http://hooks.example'
  const ask: Served['ask'] = async (method, path, { body, cookie, headers, context } = {}) => {
    const sent = {
      host: 'hooks.example',
      'sec-fetch-site': 'same-origin',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(cookie !== undefined && { cookie }),
      ...headers,
    }
    const json = body === undefined ? null : JSON.stringify(body)
    const init = { method, headers: sent, body: json }
    const request = new Request(`${url}/dashboard/${path}`, init)
    const answer = await app.dashboard(request, { address: '10.0.0.7', ...context })
    const set = answer.headers.get('set-cookie') ?? ''
    return {
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown>,
      cookie: set.split(';')[0] ?? '',
      headers: answer.headers,
    }
  }
  return { app, clock, url, ask }
}

async function signedIn(s: Served, role: 'read' | 'operate' = 'operate'): Promise<string> {
  const first = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const { secret } = role === 'operate' ? first : await s.app.admin.keys.create({ name: 'bob', role })
  return (await s.ask('POST', 'v1/session', { body: { key: secret } })).cookie
}

const codeOf = ({ status, body }: Answer): unknown => [status, body['code']]

test.each(STORES)('a key opens a session, and the cookie alone is enough from then on: %s', async (store) => {
  const s = await served(store)
  expect(codeOf(await s.ask('GET', 'v1/session'))).toEqual([401, 'KEY_MISSING'])
  const { secret } = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const answer = await s.ask('POST', 'v1/session', { body: { key: secret } })
  const until = s.clock.now() + 12 * 3_600_000
  const expected = {
    name: 'ada',
    role: 'operate',
    by: 'cookie',
    until,
    canSignOut: true,
    app: { version: '0.1.0', store: store.split(':')[0], bytes: expect.any(Number), durable: store !== 'memory:' },
  }
  expect([answer.status, answer.body]).toEqual([200, expected])
  expect(answer.headers.get('set-cookie')).toMatch(
    /^sluice-session=[\w-]{43}; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  )
  const { cookie } = answer
  expect((await s.ask('GET', 'v1/session', { cookie })).body).toEqual(expected)
  expect((await s.ask('POST', 'v1/flows/f/pause', { cookie, body: { reason: 'x' } })).status).toBe(200)
  const { items } = await s.app.admin.audit.list()
  expect(items.map(({ who, what }) => `${who} ${what}`)).toContain('ada signed in to the dashboard')
  expect(items[0]).toMatchObject({ who: 'ada', what: 'done (ok): pause the flow f: x' })
})

test.each(STORES)('the store has no session token: %s', async (store) => {
  const s = await served(store)
  const [, token = ''] = (await signedIn(s)).split('=')
  const { items } = await s.app.admin.audit.list()
  expect(JSON.stringify(items)).not.toContain(token)
  // A token made of the stored id is no session.
  expect(codeOf(await s.ask('GET', 'v1/flows', { cookie: `sluice-session=${'a'.repeat(43)}` }))).toEqual([
    401,
    'KEY_MISSING',
  ])
})

test.each(STORES)('a session ends after 12 hours, by signing out, and with its key: %s', async (store) => {
  const s = await served(store)
  const cookie = await signedIn(s)
  s.clock.advance(12 * 3_600_000 - 1)
  expect((await s.ask('GET', 'v1/flows', { cookie })).status).toBe(200)
  s.clock.advance(1)
  expect(codeOf(await s.ask('GET', 'v1/flows', { cookie }))).toEqual([401, 'KEY_MISSING'])

  const { secret } = await s.app.admin.keys.create({ name: 'eve', role: 'operate' })
  const second = (await s.ask('POST', 'v1/session', { body: { key: secret } })).cookie
  const third = (await s.ask('POST', 'v1/session', { body: { key: secret } })).cookie
  const out = await s.ask('DELETE', 'v1/session', { cookie: second, body: {} })
  expect([out.status, out.body, out.headers.get('set-cookie')]).toEqual([
    200,
    { result: 'ok' },
    'sluice-session=; Max-Age=0; HttpOnly; SameSite=Strict',
  ])
  expect(codeOf(await s.ask('GET', 'v1/flows', { cookie: second }))).toEqual([401, 'KEY_MISSING'])
  expect((await s.ask('GET', 'v1/flows', { cookie: third })).status).toBe(200)
  await s.app.admin.keys.revoke('eve')
  expect(codeOf(await s.ask('GET', 'v1/flows', { cookie: third }))).toEqual([401, 'KEY_MISSING'])
})

test('behind TLS, also of a proxy, the cookie is only for https', async () => {
  const s = await served('memory:')
  const { secret } = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const headers = { origin: 'https://hooks.example' }
  const answer = await s.ask('POST', 'v1/session', { body: { key: secret }, headers })
  expect(answer.headers.get('set-cookie')).toMatch(/; Secure$/)
})

test('the cookie counts only below the mount', async () => {
  const s = await served('memory:')
  const cookie = await signedIn(s)
  const headers = { cookie, host: 'hooks.example', 'sec-fetch-site': 'same-origin' }
  expect((await s.app.fetch(new Request(`${s.url}/v1/flows`, { headers }))).status).toBe(401)
  expect((await s.app.fetch(new Request(`${s.url}/dashboard/v1/flows`, { headers }))).status).toBe(200)
})

const DELETE_ORIGINS: readonly (readonly [Record<string, string>, number])[] = [
  [{ 'sec-fetch-site': 'cross-site', origin: 'http://evil.example' }, 403],
  [{ 'sec-fetch-site': 'same-site', origin: 'http://other.example' }, 403],
  [{ 'sec-fetch-site': 'none' }, 403],
  [{ 'sec-fetch-site': 'same-origin', origin: 'https://public.example' }, 200],
]

test.each(DELETE_ORIGINS)(
  'a change with the cookie must come from the page itself: %j gets %i',
  async (headers, status) => {
    const s = await served('memory:')
    const cookie = await signedIn(s)
    const answer = await s.ask('POST', 'v1/flows/f/pause', { cookie, body: { reason: 'x' }, headers })
    expect([answer.status, answer.body['code']]).toEqual([status, status === 200 ? undefined : 'CROSS_SITE'])
    const paused = (await s.app.admin.flows.list()).find(({ flow }) => flow === 'f')?.paused
    expect(paused !== undefined).toBe(status === 200)
  },
)

test('browsers that do not say where a request comes from are known by the origin', async () => {
  const s = await served('memory:')
  const cookie = await signedIn(s)
  const pause = async (origin: Record<string, string>): Promise<number> => {
    const headers = { host: 'hooks.example', cookie, 'content-type': 'application/json', ...origin }
    const init = { method: 'POST', headers, body: '{"reason":"x"}' }
    return (await s.app.dashboard(new Request(`${s.url}/dashboard/v1/flows/f/pause`, init))).status
  }
  expect(await pause({})).toBe(403)
  expect(await pause({ origin: 'null' })).toBe(403)
  expect(await pause({ origin: 'http://evil.example' })).toBe(403)
  expect(await pause({ origin: 'http://hooks.example' })).toBe(200)
})

test('a page of another origin cannot sign anybody in', async () => {
  const s = await served('memory:')
  const { secret } = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const headers = { 'sec-fetch-site': 'cross-site' }
  const answer = await s.ask('POST', 'v1/session', { body: { key: secret }, headers })
  expect([codeOf(answer), answer.cookie]).toEqual([[403, 'CROSS_SITE'], ''])
})

test('the role read sees and changes nothing', async () => {
  const s = await served('memory:')
  const cookie = await signedIn(s, 'read')
  expect((await s.ask('GET', 'v1/session', { cookie })).body).toMatchObject({ name: 'bob', role: 'read' })
  expect((await s.ask('GET', 'v1/flows', { cookie })).status).toBe(200)
  expect(codeOf(await s.ask('POST', 'v1/flows/f/pause', { cookie, body: { reason: 'x' } }))).toEqual([
    403,
    'ROLE_TOO_LOW',
  ])
})

test.each([{ key: 'nonsense' }, { key: `slk_000000000000_${'a'.repeat(43)}` }])('a wrong key: %j', async (body) => {
  const s = await served('memory:')
  await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const answer = await s.ask('POST', 'v1/session', { body })
  expect([codeOf(answer), answer.cookie]).toEqual([[401, 'KEY_INVALID'], ''])
})

test('sign-ins of one address are limited to 20 a minute, right or wrong; others and open sessions go on', async () => {
  const s = await served('memory:')
  const { secret } = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const { cookie } = await s.ask('POST', 'v1/session', { body: { key: secret } })
  for (let n = 1; n < 20; n++) expect((await s.ask('POST', 'v1/session', { body: { key: 'wrong' } })).status).toBe(401)
  const refused = await s.ask('POST', 'v1/session', { body: { key: secret } })
  expect([codeOf(refused), refused.cookie]).toEqual([[429, 'TOO_MANY_REQUESTS'], ''])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await s.ask('GET', 'v1/flows', { cookie })).status).toBe(200)
  const context = { address: '10.0.0.8' }
  expect((await s.ask('POST', 'v1/session', { body: { key: secret }, context })).status).toBe(200)
  s.clock.advance(120_000)
  expect((await s.ask('POST', 'v1/session', { body: { key: secret } })).status).toBe(200)
})

test('a key in the header works below the mount too', async () => {
  const s = await served('memory:')
  const { secret } = await s.app.admin.keys.create({ name: 'ada', role: 'operate' })
  const headers = { authorization: `Bearer ${secret}` }
  expect((await s.ask('GET', 'v1/session', { headers })).body).toMatchObject({
    name: 'ada',
    by: 'key',
    canSignOut: false,
  })
})

const as = (role: 'read' | 'operate'): Asked => ({
  context: { user: { name: 'grace', role } },
  body: { reason: 'x' },
})

test('behind the sign-in of the host app, its user has the role that the host gives', async () => {
  const s = await served('memory:')
  await s.app.admin.keys.create({ name: 'grace', role: 'operate' })
  const { body } = await s.ask('GET', 'v1/session', { context: { user: { name: 'grace', role: 'read' } } })
  expect(body).toMatchObject({ name: 'grace', role: 'read', by: 'host', canSignOut: false })
  expect(codeOf(await s.ask('POST', 'v1/flows/f/pause', as('read')))).toEqual([403, 'ROLE_TOO_LOW'])
  expect((await s.ask('POST', 'v1/flows/f/pause', as('operate'))).status).toBe(200)
  // A user of the host is not the key of the same name.
  expect((await s.app.admin.audit.list()).items[0]?.who).toBe('host:grace')
  const foreign = { ...as('operate'), headers: { 'sec-fetch-site': 'cross-site' } }
  expect(codeOf(await s.ask('POST', 'v1/flows/f/resume', foreign))).toEqual([403, 'CROSS_SITE'])
  expect(codeOf(await s.ask('POST', 'v1/session', { ...as('operate'), body: { key: 'x' } }))).toEqual([
    400,
    'REQUEST_INVALID',
  ])
})

test.each([{ name: '', role: 'read' }, { name: 'x\n', role: 'read' }, { name: 'x', role: 'admin' }, {}])(
  'user: %j is rejected',
  async (user) => {
    const s = await served('memory:')
    await expect(s.ask('GET', 'v1/session', { context: { user: user as never } })).rejects.toThrow(
      /CONFIG_INVALID.*user\./,
    )
  },
)

test('without a key, the same machine is let in if the app says so', async () => {
  const app = new Sluice({ store: 'memory:', log: false, admin: { open: 'loopback' } })
  onTestFinished(() => app.stop())
  const { url } = await app.listen({ port: 0 })
  const session = async (): Promise<unknown> => (await fetch(`${url}/dashboard/v1/session`)).json()
  expect(await session()).toMatchObject({ name: 'loopback', role: 'operate', by: 'loopback', canSignOut: false })
  await app.admin.keys.create({ name: 'ada', role: 'operate' })
  expect(await session()).toMatchObject({ code: 'KEY_MISSING' })
})

test('names the kind of a store that the user has opened', async () => {
  const store = await openStore('memory:')
  const app = new Sluice({ store, log: false, admin: { open: 'loopback' } })
  onTestFinished(async () => {
    await app.stop()
    await store.close()
  })
  const { url } = await app.listen({ port: 0 })
  expect(await (await fetch(`${url}/dashboard/v1/session`)).json()).toMatchObject({ app: { store: 'memory' } })
})

test('the stream of a session ends when its owner signs out', async () => {
  const s = await served('memory:')
  const cookie = await signedIn(s)
  const headers = { cookie, host: 'hooks.example', 'sec-fetch-site': 'same-origin' }
  const stream = await s.app.dashboard(new Request(`${s.url}/dashboard/v1/stream`, { headers }))
  expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain('event: begun')
  await s.ask('DELETE', 'v1/session', { cookie })
  const rest = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read());
    return 'ended'
  })()
  s.clock.advance(1_000)
  expect(await rest).toBe('ended')
})
