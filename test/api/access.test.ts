// Tests access to the API: with a key of the required role, or, in an app with open access, by a direct local call before any key exists.
import { describe, expect, test, vi } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { rig, STORES, type Answer, type CallOptions, type Rig } from './rig.ts'

const declare = (app: Sluice): Sluice => app.flow('f', { on: 'ping', run: () => {} })

const codeOf = ({ status, body }: Answer): unknown[] => [status, (body as { code?: string }).code]

describe.each(STORES)('access on %s', (store) => {
  const opened = (): Promise<Rig> => rig(store, declare)

  test.each([
    ['a direct call', {}, [200, undefined]],
    ['by IPv6', { address: '::1', headers: { host: '[::1]:8787' } }, [200, undefined]],
    ['by IPv4 in IPv6', { address: '::ffff:127.0.0.1' }, [200, undefined]],
    ['from another address', { address: '10.0.0.7' }, [401, 'KEY_MISSING']],
    ['from an unknown one', { address: 'unknown' }, [401, 'KEY_MISSING']],
    ['through something', { isDirect: false }, [401, 'KEY_MISSING']],
    ['passed on by a proxy on the machine', { headers: { 'x-forwarded-for': '127.0.0.1' } }, [401, 'KEY_MISSING']],
    ['passed on, said otherwise', { headers: { forwarded: 'for=127.0.0.1' } }, [401, 'KEY_MISSING']],
    ['passed on via', { headers: { via: '1.1 proxy' } }, [401, 'KEY_MISSING']],
    ['by a name that was made to point here', { headers: { host: 'evil.example:8787' } }, [401, 'KEY_MISSING']],
    ['by a name that begins alike', { headers: { host: 'localhost.evil.example' } }, [401, 'KEY_MISSING']],
    ['with an unknown key', { key: `slk_000000000000_${'a'.repeat(43)}` }, [401, 'KEY_INVALID']],
    ['with nonsense for a key', { headers: { authorization: 'Basic YTpi' } }, [401, 'KEY_INVALID']],
    ['by a page of another site', { headers: { 'sec-fetch-site': 'cross-site' } }, [403, 'CROSS_SITE']],
    ['by a page of another origin', { headers: { origin: 'https://evil.example' } }, [403, 'CROSS_SITE']],
    [
      'by a page of its own',
      { headers: { origin: 'http://localhost:8787', 'sec-fetch-site': 'same-origin' } },
      [200, undefined],
    ],
  ])('without any key: %s', async (_name, options, wanted) => {
    const r = await opened()
    expect(codeOf(await r.get('/v1/flows', options))).toEqual(wanted)
  })

  test.each([
    'x-forwarded-server',
    'x-forwarded-ssl',
    'x-original-url',
    'x-original-forwarded-for',
    'x-envoy-external-address',
    'cdn-loop',
    'cf-connecting-ip',
    'true-client-ip',
    'x-real-ip',
    'x-client-ip',
    'x-cluster-client-ip',
  ])('without any key: passed on with %s', async (name) => {
    const r = await opened()
    expect(codeOf(await r.get('/v1/flows', { headers: { [name]: '127.0.0.1' } }))).toEqual([401, 'KEY_MISSING'])
  })

  test('a key gives access from any address; without a key nobody has access, not even locally', async () => {
    const r = await opened()
    const { secret } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    expect(codeOf(await r.get('/v1/flows'))).toEqual([401, 'KEY_MISSING'])
    expect(codeOf(await r.get('/v1/flows', { key: secret, address: '10.0.0.7', isDirect: false }))).toEqual([
      200,
      undefined,
    ])
    expect((await r.get('/v1/flows')).headers).toMatchObject({ 'www-authenticate': 'Bearer' })
  })

  test('a key with the role read may not operate, and the action is not done', async () => {
    const r = await opened()
    await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const { secret } = await r.app.admin.keys.create({ name: 'bob', role: 'read' })
    expect(codeOf(await r.get('/v1/flows', { key: secret }))).toEqual([200, undefined])
    expect(codeOf(await r.post('/v1/flows/f/pause', { reason: 'x' }, { key: secret }))).toEqual([403, 'ROLE_TOO_LOW'])
    expect((await r.app.admin.flows.list()).find(({ flow }) => flow === 'f')?.paused).toBeUndefined()
  })

  test('a revoked key gives no access', async () => {
    const r = await opened()
    const other = await r.app.admin.keys.create({ name: 'bob', role: 'operate' })
    const { secret } = await r.app.admin.keys.create({ name: 'ada', role: 'read' })
    expect(await r.app.admin.keys.revoke('ada')).toBe('ok')
    expect(await r.app.admin.keys.revoke('ada')).toBe('missing')
    expect(codeOf(await r.get('/v1/flows', { key: secret }))).toEqual([401, 'KEY_INVALID'])
    expect(codeOf(await r.get('/v1/flows', { key: other.secret }))).toEqual([200, undefined])
  })

  test('a key with one changed character gives no access', async () => {
    const r = await opened()
    const { secret } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const last = secret.endsWith('A') ? 'B' : 'A'
    expect(codeOf(await r.get('/v1/flows', { key: secret.slice(0, -1) + last }))).toEqual([401, 'KEY_INVALID'])
  })

  test('the store contains only the hash of a key', async () => {
    const r = await opened()
    const { secret } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    expect(JSON.stringify(await r.app.admin.keys.list())).not.toContain(secret.slice(-20))
    expect(await r.app.admin.keys.list()).toMatchObject([{ name: 'ada', role: 'operate' }])
  })

  test('guessed keys are rate-limited per address; a valid key from the same address still works', async () => {
    const r = await opened()
    const { secret: key } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const guess = { key: `slk_000000000000_${'b'.repeat(43)}`, address: '10.0.0.9' }
    const codes = []
    for (let n = 0; n < 25; n++) codes.push((await r.get('/v1/flows', guess)).status)
    expect(codes.filter((status) => status === 401)).toHaveLength(20)
    const last = await r.get('/v1/flows', guess)
    expect(codeOf(last)).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0)
    expect(codeOf(await r.get('/v1/flows', { key, address: guess.address }))).toEqual([200, undefined])
  })

  test('1,500 guessed keys cause at most 1,200 lookups; keys that worked lately still work', async () => {
    const r = await opened()
    const { secret: key } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const { secret: revoked } = await r.app.admin.keys.create({ name: 'bob', role: 'operate' })
    const address = '10.0.0.9'
    for (const used of [key, revoked]) await r.get('/v1/flows', { key: used })
    const find = vi.spyOn(r.app.admin.keys, 'authenticate')
    const guesses = Array.from({ length: 1_500 }, (_, n) => `slk_${String(n).padStart(12, '0')}_${'b'.repeat(43)}`)
    const answers = await Promise.all(guesses.map((guess) => r.get('/v1/flows', { key: guess, address })))
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(20)
    expect(find).toHaveBeenCalledTimes(1_200)
    expect(codeOf(await r.get('/v1/flows', { key, address }))).toEqual([200, undefined])
    await r.app.admin.keys.revoke('bob')
    for (let n = 0; n < 2; n++)
      expect(codeOf(await r.get('/v1/flows', { key: revoked, address }))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(find).toHaveBeenCalledTimes(1_202)
  })

  test('calls with a key are counted by key, all others by address', async () => {
    const r = await opened()
    const { secret: key } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const { secret: other } = await r.app.admin.keys.create({ name: 'bob', role: 'read' })
    const address = '10.0.0.9'
    for (let n = 0; n < 1_200; n++) await r.get('/v1/flows', { address })
    expect(codeOf(await r.get('/v1/flows', { address }))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(codeOf(await r.get('/v1/flows', { address, key }))).toEqual([200, undefined])
    for (let n = 1; n < 1_200; n++) await r.get('/v1/flows', { address: `10.0.1.${n % 200}`, key })
    expect(codeOf(await r.get('/v1/flows', { key }))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(codeOf(await r.get('/v1/flows', { address, key: other }))).toEqual([200, undefined])
  })

  test('the audit log has two entries for each action under the name of the key: one before it and one with its outcome', async () => {
    const r = await opened()
    const { secret } = await r.app.admin.keys.create({ name: 'ada', role: 'operate', by: 'root' })
    await r.post('/v1/flows/f/pause', { reason: 'deploy' }, { key: secret })
    await r.post('/v1/flows/none/pause', { reason: 'typo' }, { key: secret })
    const { items } = await r.app.admin.audit.list()
    expect(items.map(({ who, what }) => [who, what])).toEqual([
      ['ada', 'not done (NOT_FOUND): pause the flow none: typo'],
      ['ada', 'requested: pause the flow none: typo'],
      ['ada', 'done (ok): pause the flow f: deploy'],
      ['ada', 'requested: pause the flow f: deploy'],
      ['root', 'created the key ada with the role operate'],
    ])
    expect(await r.app.admin.audit.verify()).toMatchObject({ kind: 'whole', entries: 5 })
  })

  test('responses tell browsers not to cache, frame, sniff or execute anything', async () => {
    const r = await opened()
    for (const answer of [await r.get('/v1/flows'), await r.get('/v1/nothing')]) {
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
      })
      expect(Object.keys(answer.headers).join()).not.toContain('access-control')
    }
  })

  test('a wrong method gets 405 with the allowed methods', async () => {
    const r = await opened()
    const { status, headers } = await r.call('PATCH', '/v1/keys')
    expect([status, headers['allow']]).toEqual([405, 'GET, POST'])
    expect((await r.get('/v1/nothing')).headers).not.toHaveProperty('allow')
  })

  test.each([
    ['{"reason":"\\ud800 x"}', 'body: reason: it must be well-formed Unicode; got a lone surrogate.'],
    ['{"reason":"x","\\udc00":1}', 'body: \ufffd: it must be well-formed Unicode; got a lone surrogate.'],
  ])('half a character is refused by name: %s', async (body, detail) => {
    const r = await opened()
    expect((await r.post('/v1/flows/f/pause', body)).body).toMatchObject({ code: 'REQUEST_INVALID', detail })
    expect((await r.post('/v1/flows/f/pause', '{"reason":"\\ud83d\\ude00"}')).status).toBe(200)
  })

  test.each([
    ['GET', '/v1/nothing', 404],
    ['DELETE', '/v1/flows', 405],
  ])('what there is not is asked for by key, and counted as anything else: %s %s', async (method, path, status) => {
    const r = await opened()
    const { secret: key } = await r.app.admin.keys.create({ name: 'ada', role: 'operate' })
    const answers = async (options: CallOptions): Promise<ReadonlyMap<number, number>> => {
      const by = new Map<number, number>()
      for (let n = 0; n < 1_210; n++) {
        const answer = await r.call(method, path, options)
        by.set(answer.status, (by.get(answer.status) ?? 0) + 1)
      }
      return by
    }
    expect(await answers({ key })).toEqual(
      new Map([
        [status, 1_200],
        [429, 10],
      ]),
    )
    expect(await answers({ address: '203.0.113.9' })).toEqual(
      new Map([
        [401, 1_200],
        [429, 10],
      ]),
    )
    expect(await answers({ key: 'wrong', address: '198.51.100.9' })).toEqual(
      new Map([
        [401, 20],
        [429, 1_190],
      ]),
    )
  })

  test('the fix of an unknown path differs from the fix of an unknown flow', async () => {
    const r = await opened()
    const fixOf = async (path: string): Promise<unknown> => ((await r.get(path)).body as { fix: string }).fix
    expect(await fixOf('/v1/nothing')).toBe('See /openapi.json for the addresses there are.')
    expect(await fixOf('/v1/events/nothing')).toContain('Look for it in the list')
  })

  test.each([
    ['GET', '/v1/nothing', {}, [404, 'NOT_FOUND']],
    ['DELETE', '/v1/flows', {}, [405, 'METHOD_NOT_ALLOWED']],
    ['GET', '/v1/flows?colour=red', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?limit=0', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?limit=1001', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?limit=1&limit=2', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?from=yesterday', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/events?cursor=9007199254740992', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/runs?cursor=99999999999999999999', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/lanes?cursor=x', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?key=a', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters?__proto__=1', {}, [400, 'REQUEST_INVALID']],
    ['GET', '/v1/dead-letters/%ff', {}, [400, 'REQUEST_INVALID']],
    ['POST', '/v1/flows/f/pause', { body: {} }, [400, 'REQUEST_INVALID']],
    ['POST', '/v1/flows/f/pause', { body: '{' }, [400, 'REQUEST_INVALID']],
    ['POST', '/v1/flows/f/pause', { body: { reason: 'x', until: 3 } }, [400, 'REQUEST_INVALID']],
    [
      'POST',
      '/v1/flows/f/pause',
      { body: { reason: 'x' }, headers: { 'content-type': 'text/plain' } },
      [415, 'BODY_NOT_JSON'],
    ],
  ])('bad input: %s %s', async (method, path, options, wanted) => {
    const r = await opened()
    const answer = await r.call(method, path, options)
    expect(codeOf(answer)).toEqual(wanted)
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.body).toMatchObject({
      type: `urn:sluice:problem:${wanted[1]}`,
      status: wanted[0],
      fix: expect.any(String),
    })
  })
})
