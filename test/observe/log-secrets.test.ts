// Nothing that looks like a secret is written down, and prose stays prose.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Emitter } from '../../src/observe/events.ts'
import { lifeLog } from '../../src/observe/log.ts'
import { cleaner, scrubbed } from '../../src/observe/log-secrets.ts'
import { systemClock } from '../../src/clock.ts'

// Put in by the tests, so that nobody who scans this repository for secrets finds any.
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
  'eyJhbGciOiJIUzI1NiJ9.§.§',
]

it.each(HOLDERS)('hides the secret in %s', (holder) => {
  const text = scrubbed(`It failed: ${holder.replaceAll('§', () => SECRET)}\nand so on`)
  expect(text).not.toContain(SECRET)
  expect(text).toContain('[redacted]')
  expect(text).toMatch(/^It failed: /)
  expect(text).toMatch(/\nand so on$/)
})

it('leaves prose, addresses and figures alone', () => {
  for (const text of [
    'HTTP 503 from https://api.test/v1/pages?page=2 after 250 ms',
    'The token: expired yesterday',
    'secret is missing; set it',
    'ENOENT: no such file or directory, open "/tmp/x"',
    'mail to ada@example.test bounced',
    'a basic mistake',
  ]) {
    expect(scrubbed(text)).toBe(text)
  }
})

it('cuts at 2,000 characters, never through a secret', () => {
  expect(scrubbed('x'.repeat(2_000))).toBe('x'.repeat(2_000))
  expect(scrubbed('x'.repeat(2_001))).toBe(`${'x'.repeat(1_999)}…`)
  expect(scrubbed('x'.repeat(10_000_000))).toHaveLength(2_000)
  fc.assert(
    fc.property(fc.integer({ min: 1_900, max: 2_010 }), fc.constantFrom(...HOLDERS), (before, holder) => {
      const text = scrubbed(`${'x '.repeat(before / 2)}${holder.replaceAll('§', () => SECRET)} ${'y'.repeat(9_000)}`)
      expect(text.length).toBeLessThanOrEqual(2_000)
      expect(text).not.toContain(SECRET.slice(0, 7))
    }),
  )
})

it('shows no half of a secret that lies where it stopped looking', () => {
  const start = `secret=${'q'.repeat(8_150)} https://ada:`
  expect(start.length).toBeLessThan(8_192)
  expect(scrubbed(`${start}${SECRET}@x.test/ and so on`)).not.toContain(SECRET.slice(0, 4))
})

it('takes no longer for texts made to be slow', () => {
  const parts = ['a://', 'secret', '=', ':', ' ', '"', "'", 'x-', 'Bearer ', '-----BEGIN ', '@', 'eyJ', '.']
  for (const part of parts) for (const other of parts) scrubbed((part + other).repeat(5_000))
})

it('hides fields by their names, in any spelling, at any depth', () => {
  const clean = cleaner(['iban'])
  expect(
    clean({ API_KEY: 1, deep: { 'Set-Cookie': ['a'], clientSecret: { x: 1 }, IBAN: 'DE' }, key: 'k', secrets: 2 }),
  ).toEqual({
    API_KEY: '[redacted]',
    deep: { 'Set-Cookie': '[redacted]', clientSecret: '[redacted]', IBAN: '[redacted]' },
    key: 'k',
    secrets: 2,
  })
})

it('no entry carries a payload: what is emitted has none, and bytes are never written', () => {
  const lines: string[] = []
  const emitter = new Emitter()
  const write = (line: string): boolean => lines.push(line) > 0
  lifeLog(emitter, { level: 'trace', destination: { write } as never }, systemClock)
  const smuggled = { event: 'e', source: 's', type: 't', lanes: 1, body: new TextEncoder().encode('the payload') }
  emitter.emit('event.received', smuggled)
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('payload')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ body: '[11 bytes]' })
})
