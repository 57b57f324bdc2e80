// The log contains nothing that looks like a secret, and leaves prose unchanged.
import { inspect } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Emitter } from '../../src/observe/emitter.ts'
import { createEventLog, createRunLog } from '../../src/observe/log/log.ts'
import { createFieldRedactor } from '../../src/observe/log/fields.ts'
import { redact } from '../../src/observe/log/redact.ts'
import { systemClock } from '../../src/clock.ts'
import { NAME, scene } from './log-scene.ts'

// The tests insert the secrets, so that scanners of this repository find none.
const SECRET = ['hunter2', 'Q9', 'xyzzy', '0123456789'].join('')

const HOLDERS: readonly string[] = [
  'Authorization: Bearer §',
  'authorization: Basic §',
  'said Basic §=',
  '"Authorization":"token §"',
  'got Bearer § from them',
  'secret=§',
  "secret = '§'",
  '"client_secret": "§"',
  'api_key=§&user=1',
  'https://x.test/?access_token=§',
  'password: §',
  'whsec_§',
  'sk_live_§',
  'rk_test_§',
  'postgres://admin:§@db.test/main',
  'redis://:§@cache.test',
  'https://§@sentry.test/1',
  'Cookie: sid=§; other=§',
  'x-api-key: §',
  'X-Hub-Signature: sha256=§',
  'ghp_§',
  'slk_0123456789ab_§',
  'slt_Ab-123456_cd_§',
  'npm_§',
  'hf_§',
  'shpat_§',
  'SG.§.§',
  'eyJhbGciOiJIUzI1NiJ9.§.§',
  'stripeKey=§',
  '"webhookToken":"§"',
  'Stripe-Signature: t=1,v1=§,v0=§',
  '{ privateKeyPem: `§` }',
  '--db-password=§',
  'passwordHash: "§"',
  "headers: { 'set-cookie': [ 'sid=§', 'b=§' ] }",
  '"credentials":{"user":{"pin":"]}§"},"code":"§"}',
  '"password" => "§"',
  '<ns:Password Type="Text">§</ns:Password>',
  '/?q=%7B%22token%22%3A%22§%22%7D',
  '&quot;secret&quot;:&quot;§&quot;',
]

it.each(HOLDERS)('hides the secret in %s', (holder) => {
  const text = redact(`It failed: ${holder.replaceAll('§', () => SECRET)}\nand so on`)
  expect(text).not.toContain(SECRET)
  expect(text).toContain('[redacted]')
  expect(text).toMatch(/^It failed: /)
  expect(text).toMatch(/\nand so on$/)
})

it('leaves prose, addresses and numbers unchanged', () => {
  for (const text of [
    'HTTP 503 from https://api.test/v1/pages?page=2 after 250 ms',
    'The token: expired yesterday',
    'secret is missing; set it',
    'ENOENT: no such file or directory, open "/tmp/x"',
    'mail to ada@example.test bounced',
    'a basic mistake',
    'npm_config_registry and npm_lifecycle_event, hf_hub, a key such as slk_…',
    'lane key: "ada", key=ada, {"key":"ada"}, dedupeKey=task-1234567890ab',
    'signature: invalid, secret: missing. Token: expired!',
    'usage: max_tokens=4096, "tokens":12, tokenCount: 7, hasPassword=true, token=null',
    'monkey=5, keyed: "by user", keyboard="qwertz"',
    'Unexpected token } in JSON at position 5',
    "Cannot read properties of undefined (reading 'token')",
    'at Token.parse (file:///app/src/token.ts:12:34)',
    'expected one of "token", "secret", "key"',
    'List<Token> is empty',
  ]) {
    expect(redact(text)).toBe(text)
  }
})

it('is not deceived by nested JSON, nor by quotes in a secret', () => {
  for (const name of ['password', 'webhookToken', 'stripeKey', 'authorization', 'x-hub-signature']) {
    for (const secret of [SECRET, `a"${SECRET}`, `a'b\\"${SECRET}`, `${SECRET}\n}]`, 'hunter2']) {
      let text: unknown = { before: 'seen', [name]: secret, after: 'seen too' }
      for (let depth = 0; depth < 5; depth++) {
        text = JSON.stringify(depth === 0 ? text : { body: text })
        const clean = redact(`upstream said ${String(text)}`)
        expect(clean).not.toContain('hunter2')
        expect(clean).toContain('seen')
        if (secret === SECRET) expect(clean).toContain('seen too')
      }
    }
  }
})

it('cuts a text at 2,000 characters, but never in the middle of a secret', () => {
  expect(redact('x'.repeat(2_000))).toBe('x'.repeat(2_000))
  expect(redact('x'.repeat(2_001))).toBe(`${'x'.repeat(1_999)}…`)
  expect(redact('x'.repeat(10_000_000))).toHaveLength(2_000)
  fc.assert(
    fc.property(fc.integer({ min: 1_900, max: 2_010 }), fc.constantFrom(...HOLDERS), (before, holder) => {
      const text = redact(`${'x '.repeat(before / 2)}${holder.replaceAll('§', () => SECRET)} ${'y'.repeat(9_000)}`)
      expect(text.length).toBeLessThanOrEqual(2_000)
      expect(text).not.toContain(SECRET.slice(0, 7))
    }),
  )
})

it('shows no part of a secret at the place where the text is cut', () => {
  const start = `secret=${'q'.repeat(8_150)} https://ada:`
  expect(start.length).toBeLessThan(8_192)
  expect(redact(`${start}${SECRET}@x.test/ and so on`)).not.toContain(SECRET.slice(0, 4))
})

it('takes no longer for texts made to be slow', () => {
  const parts = [
    'a://',
    'secret',
    '=',
    ':',
    ' ',
    '"',
    "'",
    'x-',
    'Bearer ',
    '-----BEGIN ',
    '@',
    'eyJ',
    '.',
    '\\',
    '[',
    '{',
    'token',
    '<a ',
    '>',
    '%22',
    '-',
  ]
  for (const part of parts) for (const other of parts) redact((part + other).repeat(5_000))
})

it('hides fields by their names, in any spelling, at any depth', () => {
  const clean = createFieldRedactor(['iban'])
  expect(
    clean({ API_KEY: 1, deep: { 'Set-Cookie': ['a'], clientSecret: { x: 1 }, IBAN: 'DE' }, key: 'k', secrets: 2 }),
  ).toEqual({
    API_KEY: '[redacted]',
    deep: { 'Set-Cookie': '[redacted]', clientSecret: '[redacted]', IBAN: '[redacted]' },
    key: 'k',
    secrets: 2,
  })
})

it('leaves numbers, booleans and harmless names unchanged', () => {
  const harmless = {
    key: 'ada',
    keyed: 'by user',
    monkey: 'george',
    tokens: 12,
    usage: { promptTokens: 3, tokens: { in: 1, out: 2 } },
    hasPassword: true,
    token: null,
    tokenType: 'bearer',
    idempotencyKey: 'r1',
    pair: ['ada', 'bob'],
    field: { name: 'colour', value: 'red' },
  }
  expect(createFieldRedactor()(harmless)).toEqual(harmless)
})

const NAMES: readonly string[] = [
  'password',
  'webhookToken',
  'sessionToken',
  'x-hub-signature',
  'stripeKey',
  'privateKeyPem',
  'STRIPE_API_KEY',
  'client_secret',
  'Set-Cookie',
  'Authorization',
  'db-pass',
  'apikey',
  'tokens',
  'refreshTokens',
  'awsCredentials',
]

const FIELD_SHAPES: readonly ((name: string, secret: string) => unknown)[] = [
  (name, secret) => ({ [name]: secret }),
  (name, secret) => ({ [name]: [secret, [secret]] }),
  (name, secret) => ({ [name]: { value: secret, more: { deep: secret } } }),
  (name, secret) => ({ headers: { [name]: secret } }),
  (name, secret) => ({ list: [{ [name]: secret }] }),
  (name, secret) => ({ headers: [[name, secret]] }),
  (name, secret) => ({ headers: [{ name, value: secret }] }),
  (name, secret) => ({ env: [{ key: name, value: secret }] }),
  (name, secret) => ({ rawHeaders: ['host', 'x', name, secret] }),
]

const TEXT_SHAPES: readonly ((name: string, secret: string) => string)[] = [
  (name, secret) => `${name}=${secret}`,
  (name, secret) => `${name}: "${secret}"`,
  (name, secret) => `GET /?a=1&${name}=${secret}&b=2 failed`,
  (name, secret) => JSON.stringify({ a: 1, [name]: secret }),
  (name, secret) => JSON.stringify({ a: 1, [name]: [secret, { b: secret }], c: 1 }, undefined, 2),
  (name, secret) => JSON.stringify({ body: JSON.stringify({ a: 1, [name]: secret }) }),
  (name, secret) => JSON.stringify({ body: JSON.stringify({ a: JSON.stringify({ [name]: { secret } }) }) }),
  (name, secret) => inspect({ a: 1, [name]: secret, list: [{ [name]: [secret] }] }),
  (name, secret) => encodeURIComponent(JSON.stringify({ [name]: secret })),
  (name, secret) => `<${name}>${secret}</${name}>`,
]

it('of secrets planted under many names and in many shapes, none is written', () => {
  const deadLetters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/'.split('')
  const secrets = fc
    .string({ unit: fc.constantFrom(...deadLetters), minLength: 4, maxLength: 60 })
    .map((random) => `Zq9${random}`)
  const shapes = fc.oneof(
    fc.constantFrom(...FIELD_SHAPES),
    fc.tuple(fc.constantFrom(...TEXT_SHAPES), fc.boolean()).map(([text, isError]) => (name: string, secret: string) => {
      const said = `It said: ${text(name, secret)}`
      return isError ? { error: new Error(said) } : { said, deep: [{ said }] }
    }),
  )
  fc.assert(
    fc.property(fc.constantFrom(...NAMES), secrets, shapes, (name, secret, shape) => {
      const t = scene({ level: 'debug' })
      createRunLog(t.logger, NAME).info('planted', shape(name, secret) as Record<string, unknown>)
      const line = t.text()
      expect(line).toContain('planted')
      expect(line).not.toContain(secret)
      expect(line).not.toContain(encodeURIComponent(secret))
    }),
    { numRuns: 2_000 },
  )
})

it('no entry contains a payload: emitted events have none, and bytes are never written', () => {
  const lines: string[] = []
  const emitter = new Emitter()
  const write = (line: string): boolean => lines.push(line) > 0
  createEventLog(emitter, { level: 'trace', destination: { write } as never }, systemClock)
  const smuggled = { event: 'e', source: 's', type: 't', lanes: 1, body: new TextEncoder().encode('the payload') }
  emitter.emit('event.received', smuggled)
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('payload')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ body: '[11 bytes]' })
})
