// Tests how the admin API is served: locally by the server, and only with a key behind a listed proxy and through `fetch`.
import { connect } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import { unverified } from '../../src/sources/index.ts'
import { DOCUMENT } from './document.ts'

function appOf(options: Partial<SluiceOptions> = { admin: { open: 'loopback' } }): Sluice {
  const app = new Sluice({ store: 'memory:', log: false, ...options })
  onTestFinished(() => app.stop())
  return app.flow('f', { on: 'ping', run: () => {} })
}

const statusOf = async (url: string, headers: Record<string, string> = {}): Promise<number> =>
  (await fetch(url, { headers })).status

test('the server requires a key from everybody, also locally and before a key exists', async () => {
  const app = appOf({})
  const { url } = await app.listen({ port: 0 })
  for (const path of ['/v1/flows', '/openapi.json', '/metrics', '/v1/stream', '/v1/nothing']) {
    expect([path, await statusOf(url + path)]).toEqual([path, 401])
  }
  const made = await fetch(`${url}/v1/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"eve","role":"operate"}',
  })
  expect([made.status, await made.json()]).toEqual([401, expect.objectContaining({ code: 'KEY_MISSING' })])
  expect(await app.admin.keys.list()).toEqual([])
  const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  expect(await statusOf(`${url}/v1/flows`, { authorization: `Bearer ${secret}` })).toBe(200)
})

test.each([{ open: true }, { open: 'everybody' }, { opne: 'loopback' }, 'loopback'])(
  'admin: %j is rejected',
  (admin) => {
    expect(() => appOf({ admin: admin as never })).toThrow(/CONFIG_INVALID.*admin/)
  },
)

test("with open: 'loopback', the server accepts local calls without a key until a key exists", async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0 })
  const answer = await fetch(`${url}/v1/flows`)
  expect(answer.headers.get('content-type')).toContain('application/json')
  expect(await answer.json()).toMatchObject({ items: expect.arrayContaining([{ flow: 'f', lanes: 0, live: 0 }]) })
  expect(await statusOf(`${url}/openapi.json`)).toBe(200)
  expect(await statusOf(`${url}/v1/flows`, { 'x-forwarded-for': '127.0.0.1' })).toBe(401)
  const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  expect(await statusOf(`${url}/v1/flows`)).toBe(401)
  expect(await statusOf(`${url}/v1/flows`, { authorization: `Bearer ${secret}` })).toBe(200)
})

test.each([
  ['1.0', '127.0.0.1', 401],
  ['1.1', '127.0.0.1', 200],
  ['1.1', 'hooks.example.com', 401],
])('a call by HTTP/%s to %s, as from an unlisted proxy, gets %i', async (version, host, status) => {
  const { url } = await appOf().listen({ port: 0 })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(`GET /v1/flows HTTP/${version}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  expect(Buffer.concat(await socket.toArray()).toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test('behind a listed proxy, every call needs a key', async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0, trustProxy: ['127.0.0.1'] })
  expect(await statusOf(`${url}/v1/flows`)).toBe(401)
  expect(await statusOf(`${url}/v1/flows`, { 'x-forwarded-for': '127.0.0.1' })).toBe(401)
  const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  expect(await statusOf(`${url}/v1/flows`, { authorization: `Bearer ${secret}` })).toBe(200)
})

test('mounted in a framework, every call needs a key, because only the framework knows the caller', async () => {
  const app = appOf()
  const ask = (headers = {}): Promise<Response> =>
    app.fetch(new Request('http://localhost/v1/flows', { headers }), { address: '127.0.0.1' })
  expect((await ask()).status).toBe(401)
  const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  expect((await ask({ authorization: `Bearer ${secret}` })).status).toBe(200)
})

test('a wrong key is reported and counted, but never shown', async () => {
  const app = appOf()
  const { secret } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  const { url } = await app.listen({ port: 0 })
  const told = app.once('key.refused')
  expect(await statusOf(`${url}/v1/flows`, { authorization: `Bearer ${secret}x` })).toBe(401)
  expect(await told).toEqual({ address: '127.0.0.1' })
  expect(await app.admin.metrics()).toMatch(/^sluice_keys_refused_total 1$/m)
})

test('an unexpected failure refers the caller to the log, which contains it', async () => {
  const lines: string[] = []
  const app = new Sluice({
    store: 'memory:',
    admin: { open: 'loopback' },
    log: { destination: { write: (line: string) => lines.push(line) } as never },
  })
  onTestFinished(() => app.stop())
  vi.spyOn(app.admin.events, 'list').mockRejectedValueOnce(new TypeError('no column x; token=abc123'))
  const { url } = await app.listen({ port: 0 })
  const answer = await fetch(`${url}/v1/events?type=ping`)
  expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('column')])
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({
      level: 50,
      msg: 'api.failed',
      method: 'GET',
      path: '/v1/events',
      error: 'TypeError: no column x; token=[redacted]',
    }),
  ])
  expect(await app.admin.metrics()).toMatch(/^sluice_api_failures_total 1$/m)
})

test('a body that is too long is refused, and the server goes on', async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0 })
  const body = JSON.stringify({ reason: 'x'.repeat(1_100_000) })
  const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
  expect((await fetch(`${url}/v1/flows/f/pause`, init)).status).toBe(413)
  expect(await statusOf(`${url}/v1/flows`)).toBe(200)
})

test('a request that is rejected before routing gets a documented problem, without a fix', async () => {
  const { url } = await appOf().listen({ port: 0 })
  const answer = await fetch(`${url}/v1/flows`, { headers: { 'x-long': 'x'.repeat(20_000) } })
  const told = (await answer.json()) as Readonly<Record<string, unknown>>
  expect([answer.status, told['code'], told['fix']]).toEqual([431, 'HEADERS_TOO_LARGE', undefined])
  const { required = [], properties = {} } = DOCUMENT.components.schemas['Problem'] ?? {}
  expect(Object.keys(told)).toEqual(expect.arrayContaining([...required]))
  expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(told)))
})

test.each(['/v1/hook', '/openapi.json', '/metrics', '/healthz'])('no source can have the path %s', (path) => {
  expect(() => appOf().source('s', unverified({ verify: 'none' }), { path })).toThrow(
    'must not be one of the server itself',
  )
})

test.each(['sluice', 'Sluice'])('no source can be called %s: its senders could raise alerts', (name) => {
  expect(() => appOf().source(name, unverified({ verify: 'none' }))).toThrow('reserved for events of Sluice itself')
})

test('the stream over HTTP sends changes to keys that may read, and ends with the app', async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0 })
  await app.start()
  const response = await fetch(`${url}/v1/stream`)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  await app.publish({ type: 'ping' })
  let text = ''
  while (!text.includes('event: settled')) text += (await reader.read()).value ?? ''
  expect(text).toMatch(/event: event[^]*event: claimed[^]*event: settled/)
  expect(await statusOf(`${url}/v1/stream`, { 'x-forwarded-for': '10.0.0.1' })).toBe(401)
  await app.stop()
  for (;;) if ((await reader.read()).done) break
})

type Reader = ReadableStreamDefaultReader<string>

async function watching(url: string, headers: Record<string, string> = {}): Promise<Reader> {
  const { body } = await fetch(`${url}/v1/stream`, { headers })
  return (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
}

async function readUntil(reader: Reader, wanted: string): Promise<string> {
  let text = ''
  while (!text.includes(wanted)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`It ended without ${wanted}: ${text}`)
    text += value
  }
  return text
}

test('a key that is revoked, and the machine itself from the first key on, hear no more of the stream', async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0 })
  const machine = await watching(url)
  await readUntil(machine, 'begun')
  const { secret: key } = await app.admin.keys.create({ name: 'ada', role: 'operate' })
  for (;;) if ((await machine.read()).done) break
  const { secret } = await app.admin.keys.create({ name: 'bob', role: 'read' })
  const [ada, bob] = await Promise.all([key, secret].map((one) => watching(url, { authorization: `Bearer ${one}` })))
  await app.admin.keys.revoke('bob')
  await app.publish({ type: 'ping' })
  let heard = ''
  for (;;) {
    const { done, value } = await (bob as Reader).read()
    if (done) break
    heard += value
  }
  expect(heard).not.toContain('event: event')
  await readUntil(ada as Reader, 'event: event')
})

test('a run that dies is sent as a dead letter', async () => {
  const app = appOf()
  app.flow('fails', { on: 'bad', key: () => 'ada', retry: [], run: () => Promise.reject(new Error('no luck')) })
  const { url } = await app.listen({ port: 0 })
  await app.start()
  const reader = await watching(url)
  await readUntil(reader, 'begun')
  await app.publish({ type: 'bad' })
  const text = await readUntil(reader, 'event: dead')
  expect(text).not.toContain('event: settled')
  expect(text).toMatch(/"kind":"dead".*"flow":"fails".*"key":"ada"/)
  expect(text).toMatch(/"kind":"claimed".*"key":"ada"/)
  expect(text).toMatch(/"kind":"event".*"source":"app"/)
})

test('a reader of the stream that disconnects leaves nothing in memory', async () => {
  const app = appOf()
  const { url } = await app.listen({ port: 0 })
  for (let n = 0; n < 130; n++) {
    const gone = new AbortController()
    const response = await fetch(`${url}/v1/stream`, { signal: gone.signal })
    expect(response.status).toBe(200)
    gone.abort()
  }
})
