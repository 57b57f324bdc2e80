// 10,000 random requests and changed genuine ones: no 5xx, no crash, and no accepted forgery (S6, S9).
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { github } from '../../src/sources/github.ts'
import { bytesOf, eventsIn, githubHeaders, KEY, opened, SECRET, textOf } from '../receive/scene.ts'
import { HEADER_NAMES, PROVEN, withAll } from './all-sources.ts'
import { hook, listening, Wire } from './rig.ts'

const TIMES = 10_000
const ON_THE_SOCKET = 300
const SEED = 20_261_115
const ANY_RATE = { addressRate: { rate: Infinity, per: '1m' } } as const

/** No request knows the secret of a source. The last source needs none. */
const NAMES = [...PROVEN, 'packed', 'nobody', 'unverified']

const WORDS = [
  'application/json',
  'application/x-www-form-urlencoded',
  'gzip',
  'br',
  'identity',
  'sha256=',
  `sha256=${'0'.repeat(64)}`,
  'application/cloudevents+json',
  'application/cloudevents-batch+json',
  '1.0',
  'hooks.example.com',
  'v0=',
  't=1,v1=',
  'v1,',
  '-1',
  '1e9',
  '9'.repeat(30),
  '',
  'Bearer ',
  'a'.repeat(5_000),
] as const

/** A header's value has one byte per character. */
const value = fc.oneof(
  fc.constantFrom(...WORDS),
  fc.string({
    unit: fc
      .integer({ min: 0x20, max: 0xff })
      .filter((code) => code !== 0x7f)
      .map((code) => String.fromCharCode(code)),
    maxLength: 80,
  }),
)
const headers = fc.dictionary(fc.constantFrom(...HEADER_NAMES), value, { maxKeys: 6, noNullPrototype: true })

const NASTY = [
  '',
  '{',
  'null',
  '[]',
  '{}',
  '"\\ud800"',
  '\ufeff{"id":"a","type":"b"}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"id":12345678901234567890,"type":"a","type":"b"}',
  '{"type":"url_verification","challenge":"<script>"}',
  '{"verification_token":"secret_x"}',
  '['.repeat(5_000),
  `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`,
  'payload=%7B%7D',
  'a=1&a=2&__proto__=3&=&&%',
  '{"subscription_id":1,"object_type":"activity","object_id":1,"aspect_type":"update","event_time":1}',
  '{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"statuses":[{}]}}]}]}',
  '{"sleeps":[{"userId":"a"}]}',
  '[{"specversion":"1.0","id":"1","source":"/","type":"t","extra":1e400}]',
  '{"source":{"event_id":"e"},"data":{"object":"page","id":"p"}}',
  '\0',
] as const
const body = fc.oneof(
  fc.constantFrom(...NASTY).map((text) => Buffer.from(text)),
  fc.json({ maxDepth: 5 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
)
const method = fc.constantFrom('POST', 'POST', 'POST', 'POST', 'PUT', 'OPTIONS', 'DELETE', 'GET', 'HEAD')
const query = fc.constantFrom(
  '',
  '?a=1',
  '?hub.mode=subscribe&hub.challenge=1',
  '?%',
  '?k=%00&__proto__=1',
  '?access_token=guessed',
  `?bodySHA256=${'0'.repeat(64)}`,
)
const nonsense = fc.record({ name: fc.constantFrom(...NAMES), method, headers, body, query, isSigned: fc.boolean() })

function withoutSignature(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'x-hub-signature-256'))
}

function isPolluted(): boolean {
  return 'polluted' in {} || Object.keys(Object.prototype).length > 0
}

describe('through app.fetch', () => {
  it(`${TIMES} random requests get a status below 500, and none is accepted without a valid signature`, async () => {
    const { app, store } = await opened(withAll, { encryptionKey: KEY, ...ANY_RATE })
    const seen = new Map<number, number>()
    const check = fc.asyncProperty(nonsense, async (one) => {
      const bare = one.method === 'GET' || one.method === 'HEAD'
      const isSigned = one.isSigned && one.name === 'github'
      const request = new Request(`http://hooks.test/in/${one.name}${one.query}`, {
        method: one.method,
        // Some requests are signed with the secret of the GitHub source, with a random body.
        headers: isSigned ? { ...githubHeaders(one.body), ...withoutSignature(one.headers) } : one.headers,
        body: bare ? null : bytesOf(one.body),
      })
      const { status } = await app.fetch(request, { address: '192.0.2.1' })
      seen.set(status, (seen.get(status) ?? 0) + 1)
      expect(status).toBeLessThan(500)
      if (one.name !== 'unverified' && !isSigned) expect(status).toBeGreaterThanOrEqual(400)
    })
    await fc.assert(check, { numRuns: TIMES, seed: SEED })
    expect(isPolluted()).toBe(false)
    const stored = await store.find({ kind: 'events', filter: {}, cursor: '', n: 1_000 })
    expect(new Set(stored.items.map(({ source }) => source))).toEqual(new Set(['unverified', 'github']))
    // Every reason for a rejection occurred, and some requests were accepted.
    expect([...seen.keys()]).toEqual(expect.arrayContaining([202, 400, 401, 404, 405, 413, 415]))
  })

  it('2,000 signed requests with one changed byte are rejected, wherever the byte is', async () => {
    const { app, store } = await opened((one) => one.source('github', github({ secret: SECRET })), ANY_RATE)
    const change = fc.record({
      body: fc.json(),
      at: fc.nat(),
      bit: fc.integer({ min: 0, max: 7 }),
      inBody: fc.boolean(),
    })
    const check = fc.asyncProperty(change, async ({ body: text, at, bit, inBody }) => {
      const right = githubHeaders(text)
      const [sent, signature] = [bytesOf(text), bytesOf(right['x-hub-signature-256'])]
      const target = inBody ? sent : signature
      target[at % target.length] = (target[at % target.length] ?? 0) ^ (1 << bit)
      // A value that a header cannot contain cannot be sent.
      const written = Buffer.from(signature).toString('latin1')
      if (/[\0\r\n]/.test(written)) return
      const forged = { ...right, 'x-hub-signature-256': written }
      const request = new Request('http://hooks.test/in/github', { method: 'POST', headers: forged, body: sent })
      expect((await app.fetch(request)).status).toBe(401)
    })
    await fc.assert(check, { numRuns: 2_000, seed: SEED })
    expect(await eventsIn(store)).toEqual([])
    expect(
      (
        await app.fetch(
          new Request('http://hooks.test/in/github', { method: 'POST', headers: githubHeaders('{}'), body: '{}' }),
        )
      ).status,
    ).toBe(202)
  })

  it('1,000 random bodies are stored byte for byte by a source that verifies nothing', async () => {
    const { app, store } = await opened(withAll, { encryptionKey: KEY, ...ANY_RATE })
    const sent: string[] = []
    const check = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const response = await app.fetch(
        new Request('http://hooks.test/in/unverified', {
          method: 'POST',
          headers: { 'content-type': 'application/octet-stream' },
          body: bytesOf(bytes),
        }),
      )
      expect(response.status).toBe(202)
      sent.push(Buffer.from(bytes).toString('hex'))
    })
    await fc.assert(check, { numRuns: 1_000, seed: SEED })
    const stored = (await eventsIn(store)).map((event) => Buffer.from(event.body ?? []).toString('hex'))
    expect(stored).toEqual(sent)
  })
})

function framed(how: string, bytes: Buffer): readonly [string, Buffer] {
  const chunked = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n0\r\n\r\n')])
  if (how === 'chunked') return ['transfer-encoding: chunked\r\n', chunked]
  if (how === 'both') return [`transfer-encoding: chunked\r\ncontent-length: ${bytes.length}\r\n`, chunked]
  if (how === 'negative') return ['content-length: -1\r\n', bytes]
  if (how === 'none') return ['', bytes]
  return [`content-length: ${bytes.length + (how === 'short' ? 1 : 0)}\r\n`, bytes]
}

describe('through the socket', () => {
  const line = fc.constantFrom(
    'POST /in/github HTTP/1.1',
    'POST /in/unverified HTTP/1.1',
    'GET /%ZZ HTTP/1.1',
    'POST //in//github HTTP/1.1',
    'PUT /in/github/../github HTTP/1.1',
    'POST /in/github HTTP/9.9',
    'POST /in/github',
    'BREW /in/github HTTP/1.1',
    'POST /in/\0 HTTP/1.1',
    'POST http://[/in/github HTTP/1.1',
  )
  const framing = fc.constantFrom('length', 'short', 'chunked', 'both', 'negative', 'none')
  const raw = fc.record({ line, headers, body, framing })

  it(`${ON_THE_SOCKET} random requests do not end the server, and nothing forged is stored`, async () => {
    const { port, url, app, store } = await listening({}, withAll, { encryptionKey: KEY })
    const check = fc.asyncProperty(raw, async (one) => {
      const [frame, bytes] = framed(one.framing, one.body)
      const own = Object.entries(one.headers).filter(([name]) => name !== 'content-length')
      const lines = own.map(([name, text]) => `${name}: ${text}\r\n`).join('')
      const wire = new Wire(port)
      wire.write(Buffer.from(`${one.line}\r\nhost: hooks.test\r\nconnection: close\r\n${lines}${frame}\r\n`, 'latin1'))
      wire.write(bytes)
      // The sender closes its side, which ends a body that is too short.
      wire.socket.end()
      await wire.closed
      expect(wire.status).toBeLessThan(500)
    })
    await fc.assert(check, { numRuns: ON_THE_SOCKET, seed: SEED })
    expect(new Set((await eventsIn(store)).map(({ source }) => source)).isSubsetOf(new Set(['unverified']))).toBe(true)
    expect((await app.admin.sources.refused('github')).length).toBeGreaterThan(0)
    expect(isPolluted()).toBe(false)
    expect((await hook(url, '{"still":"there"}')).status).toBe(202)
    const [last] = (await eventsIn(store)).filter(({ source }) => source === 'github')
    expect(textOf(last?.body)).toBe('{"still":"there"}')
  })
})
