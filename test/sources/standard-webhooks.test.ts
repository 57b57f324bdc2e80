// Tests Standard Webhooks: its own package signs and verifies like the source; keys, header families and several signatures.
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { standardWebhooks } from '../../src/sources/standard-webhooks.ts'
import { BODY, cases } from './cases/standard-webhooks.ts'
import { NOW, receive, requestOf, withHeader } from './faults.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'

// The package reads the system's clock.
beforeEach(() => void vi.useFakeTimers({ now: NOW }))
afterEach(() => void vi.useRealTimers())

function messageOf(signature: string, body: string, at = NOW): ReturnType<typeof requestOf> {
  const headers = { 'webhook-id': ID, 'webhook-timestamp': String(at / 1_000), 'webhook-signature': signature }
  return requestOf({ body, headers })
}

test('the test vector of the specification is accepted', () => {
  const request = messageOf(
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    '{"test": 2432232314}',
    1_614_265_330_000,
  )
  expect(receive(standardWebhooks({ secret: SECRET }), request, SECRET, 1_614_265_330_000).outcome).toBe('accepted')
})

test('the source accepts what the package signs, and the package accepts what the tests sign', () => {
  const signed = messageOf(new Webhook(SECRET).sign(ID, new Date(NOW), BODY), BODY)
  expect(receive(standardWebhooks({ secret: SECRET }), signed, SECRET).outcome).toBe('accepted')
  const [one] = cases
  const { headers } = one?.request(SECRET, NOW) ?? signed
  expect(new Webhook(SECRET).verify(BODY, { ...headers })).toEqual(JSON.parse(BODY))
})

function outcomeOf(signature: string, secret: string | readonly string[]): string {
  return receive(standardWebhooks({ secret }), messageOf(signature, BODY), '').outcome
}

test('one of several signatures by one of several secrets is enough', () => {
  const [first, second] = [SECRET, OTHER].map((secret) => new Webhook(secret).sign(ID, new Date(NOW), BODY))
  expect(outcomeOf(`${first} ${second}`, OTHER)).toBe('accepted')
  expect(outcomeOf(`v1a,AAAA v2,AAAA ${first}`, SECRET)).toBe('accepted')
  expect(outcomeOf(`${second}`, [SECRET, OTHER])).toBe('accepted')
  expect(outcomeOf(`v2,${first?.slice(3)}`, SECRET)).toBe('SIGNATURE_WRONG')
})

test('of several ed25519 signatures the first three are tried, because each needs a pass over the body', () => {
  const one = cases[2]
  const request = one?.request(one.secret, NOW) ?? requestOf({ body: '' })
  const genuine = request.headers['webhook-signature'] ?? ''
  const made = Array.from({ length: 10 }, (_, n) => `v1a,${Buffer.alloc(64, n).toString('base64')}`)
  const after = (n: number): string =>
    receive(
      standardWebhooks({ secret: one?.secret ?? '' }),
      withHeader(request, 'webhook-signature', [...made.slice(0, n), genuine].join(' ')),
      '',
    ).outcome
  expect([after(2), after(3)]).toEqual(['accepted', 'SIGNATURE_WRONG'])
})

test('headers of the other family do not count as signed', () => {
  const [, svix] = cases
  const genuine = svix?.request(SECRET, NOW) ?? requestOf({ body: '' })
  const mixed = withHeader(genuine, 'webhook-id', 'msg_other')
  expect(receive(standardWebhooks({ secret: SECRET }), mixed, SECRET).events).toMatchObject([{ dedupeId: ID }])
})

test('if both families are present, the one of the standard counts', () => {
  const signed = messageOf(new Webhook(SECRET).sign(ID, new Date(NOW), BODY), BODY)
  const both = withHeader(withHeader(signed, 'svix-signature', 'v1,AAAA'), 'svix-id', 'msg_other')
  expect(receive(standardWebhooks({ secret: SECRET }), both, '').events).toMatchObject([{ dedupeId: ID }])
})

describe('an invalid secret', () => {
  test.each([
    ['whsec_not base64!', /must be base64/],
    ['whsec_', /must be base64/],
    ['whpk_AAAA', /must be base64/],
    ['whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', /private key/],
  ])('%s', (secret, message) => {
    expect(() => standardWebhooks({ secret })).toThrow(message)
    expect(() => standardWebhooks({ secret: [SECRET, secret] })).toThrow(/CONFIG_INVALID/)
  })
})

test('type and time come from the body, the id from the headers; options add further names', () => {
  const request = messageOf(new Webhook(SECRET).sign(ID, new Date(NOW), BODY), BODY)
  const source = standardWebhooks({ secret: SECRET, subject: 'data.id', tenant: () => 'acme' })
  expect(source.events(request)).toEqual([
    { type: 'invoice.paid', dedupeId: ID, subject: 'in_1', tenant: 'acme', time: NOW - 1_500, body: request.body },
  ])
})

test('an id with a dot is rejected, because the signed content would be ambiguous', () => {
  const id = 'msg.1'
  const signed = messageOf(new Webhook(SECRET).sign(id, new Date(NOW), BODY), BODY)
  expect(receive(standardWebhooks({ secret: SECRET }), withHeader(signed, 'webhook-id', id), SECRET).outcome).toBe(
    'SIGNATURE_WRONG',
  )
})
