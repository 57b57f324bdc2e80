// Tests that the packages of receivers verify our signatures, with either secret during a rotation, and reject all
// others.
import { createHmac } from 'node:crypto'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { standardBody } from '../../src/deliver/forms/events.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'
import { newSecret } from '../../src/deliver/secrets.ts'
import { secretFaultFor, createSignatureHeaders, signingFault, type Signing } from '../../src/deliver/signing.ts'

const NOW = Date.UTC(2026, 10, 16, 1, 2, 3, 456)
const ID = 'store-1a'
const BODY = Buffer.from('{"type":"versions","timestamp":"2026-11-16T01:02:03.456Z","data":{"events":[{"id":"é"}]}}')

// The packages use the system clock.
beforeEach(() => void vi.useFakeTimers({ now: NOW }))
afterEach(() => void vi.useRealTimers())

function standard(secrets: readonly string[], at = NOW): Record<string, string> {
  return { ...createSignatureHeaders({ kind: 'standard' }, { id: ID, at, body: BODY, secrets }) }
}

describe.each([
  ['standardwebhooks', (secret: string) => new StandardWebhook(secret)],
  ['svix', (secret: string) => new SvixWebhook(secret)],
])('by %s', (_, webhookOf) => {
  const verified = (secret: string, headers: Record<string, string>, body: Buffer = BODY): string => {
    try {
      webhookOf(secret).verify(body.toString(), headers)
      return 'verified'
    } catch (error) {
      return (error as Error).message
    }
  }

  test('D1 a signed body is verified', () => {
    const secret = newSecret()
    expect(verified(secret, standard([secret]))).toBe('verified')
  })

  test('D1 a real batch is verified', () => {
    const secret = newSecret()
    const named = { id: 'a', source: 'meta', type: 'NEW_VERSION', time: NOW, tenant: '', subject: '', attributes: '' }
    const event = new FlowEvent({ ...named, body: Buffer.from('{"n":12345678901234567890}') })
    const body = standardBody('versions', [event])
    const headers = createSignatureHeaders({ kind: 'standard' }, { id: ID, at: NOW, body, secrets: [secret] })
    expect(verified(secret, { ...headers }, body)).toBe('verified')
  })

  test('either active secret verifies during a rotation, and no other', () => {
    const [newer, older, other] = [newSecret(), newSecret(), newSecret()]
    const headers = standard([newer, older])
    expect(verified(newer, headers)).toBe('verified')
    expect(verified(older, headers)).toBe('verified')
    expect(verified(other, headers)).toBe('No matching signature found')
    expect(verified(older, standard([newer]))).toBe('No matching signature found')
  })

  test('a changed body, id or time is rejected', () => {
    const secret = newSecret()
    const headers = standard([secret])
    const changed = Buffer.from(BODY.toString().replace('versions', 'version5'))
    expect(verified(secret, headers, changed)).toBe('No matching signature found')
    expect(verified(secret, { ...headers, 'webhook-id': 'store-1b' })).toBe('No matching signature found')
    const later = String(Number(headers['webhook-timestamp']) + 1)
    expect(verified(secret, { ...headers, 'webhook-timestamp': later })).toBe('No matching signature found')
  })

  test('a signature of an hour ago is too old, so each attempt is signed again', () => {
    const secret = newSecret()
    expect(verified(secret, standard([secret], NOW - 3_600_000))).toBe('Message timestamp too old')
  })
})

test('a secret without whsec_ is used as its bytes', () => {
  const secret = 'shared-secret-key-é'
  const raw = new StandardWebhook(Buffer.from(secret), { format: 'raw' })
  expect(raw.verify(BODY, standard([secret]))).toEqual(JSON.parse(BODY.toString()))
})

test('the test vector of the specification', () => {
  const headers = createSignatureHeaders(
    { kind: 'standard' },
    {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      at: 1_614_265_330_999,
      body: Buffer.from('{"test": 2432232314}'),
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    },
  )
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test.each(['', 'a.b', 'a b', 'a\n'])('an ambiguous id like %j is not signed', (id) => {
  expect(() =>
    createSignatureHeaders({ kind: 'standard' }, { id, at: NOW, body: BODY, secrets: [newSecret()] }),
  ).toThrow('id')
})

test('without a secret nothing is signed', () => {
  expect(() => standard([])).toThrow('no secret')
})

const byHand = (secret: string, encoding: 'hex' | 'base64'): string =>
  createHmac('sha256', secret).update(BODY).digest(encoding)

test.each(['hex', 'base64'] as const)('a custom header in %s', (encoding) => {
  const signing: Signing = { kind: 'hmac', header: 'X-Webhook-Signature', encoding, prefix: 'sha256=' }
  const headers = createSignatureHeaders(signing, { id: ID, at: NOW, body: BODY, secrets: ['shared-secret-key'] })
  expect(headers).toEqual({
    'webhook-id': ID,
    'X-Webhook-Signature': `sha256=${byHand('shared-secret-key', encoding)}`,
  })
})

test('a header with room for one signature uses the older secret until it ends', () => {
  const secrets = ['the-newer-secret-1', 'the-older-secret-1']
  const signing: Signing = { kind: 'hmac', header: 'X-Sig', encoding: 'hex' }
  expect(createSignatureHeaders(signing, { id: ID, at: NOW, body: BODY, secrets })).toEqual({
    'webhook-id': ID,
    'X-Sig': byHand('the-older-secret-1', 'hex'),
    'X-Sig-next': byHand('the-newer-secret-1', 'hex'),
  })
  const bearer = createSignatureHeaders({ kind: 'bearer' }, { id: ID, at: NOW, body: BODY, secrets })
  expect(bearer).toEqual({ 'webhook-id': ID, authorization: 'Bearer the-older-secret-1' })
})

const own = (header: string, prefix = ''): Signing => ({ kind: 'hmac', header, encoding: 'hex', prefix })

test('an invalid header is rejected when the signing is chosen', () => {
  for (const kind of ['standard', 'bearer'] as const) expect(signingFault({ kind })).toBeUndefined()
  expect(signingFault(own('X-Webhook-Signature', 'sha256='))).toBeUndefined()
  expect(signingFault(own('host'))).toBe('An endpoint cannot set host.')
  expect(signingFault(own('x-a', 'a\r\n'))).toBe('The value of x-a must be printable ASCII text.')
})

test('a secret must fit its signing', () => {
  for (const kind of ['standard', 'bearer'] as const) expect(secretFaultFor({ kind }, newSecret())).toBeUndefined()
  expect(secretFaultFor({ kind: 'standard' }, 'short')).toBe('It must have at least 16 bytes; got 5.')
  expect(secretFaultFor({ kind: 'standard' }, 'with a space in the middle')).toBeUndefined()
  expect(secretFaultFor({ kind: 'bearer' }, 'with a space in the middle')).toContain('without spaces')
})

describe.each([
  [undefined, 'kind'],
  [null, 'kind'],
  ['standard', 'kind'],
  [{}, 'kind'],
  [{ kind: 'none' }, 'kind'],
  [{ kind: 'Standard' }, 'kind'],
  [{ kind: 'toString' }, 'kind'],
  [{ kind: 'hmac', header: 'x-sig', encoding: 'latin1' }, 'encoding'],
  [{ kind: 'hmac', header: 'x-sig' }, 'encoding'],
])('the unknown signing %o', (signing, field) => {
  test('is rejected and signs nothing', () => {
    expect(signingFault(signing as never)).toContain(field)
    const what = { id: ID, at: NOW, body: BODY, secrets: [newSecret()] }
    expect(() => createSignatureHeaders(signing as never, what)).toThrow()
  })
})

test.each([
  [{ kind: 'hmac', encoding: 'hex' }, 'header'],
  [{ kind: 'hmac', header: 'x-sig', encoding: 'hex', prefix: 1 }, 'x-sig'],
  [{ kind: 'standard', header: 'x-sig' }, 'header'],
])('%o is rejected instead of misread', (signing, field) => {
  expect(signingFault(signing as never)).toContain(field)
})
