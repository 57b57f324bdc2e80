// Tests Stripe: the source accepts what Stripe's own package signs, and the package accepts what the tests sign.
import { Stripe } from 'stripe'
import { expect, test } from 'vitest'
import { stripe } from '../../src/sources/stripe.ts'
import { BODY, cases } from './cases/stripe.ts'
import { NOW, receive, requestOf } from './faults.ts'

const SECRET = 'whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH'
const { webhooks } = new Stripe('sk_test_1')

function signed(payload: string, secret = SECRET): string {
  return webhooks.generateTestHeaderString({ payload, secret, timestamp: NOW / 1_000 })
}

function outcomeOf(header: string, secret: string | readonly string[] = SECRET): string {
  const request = requestOf({ body: BODY, headers: { 'stripe-signature': header } })
  return receive(stripe({ secret }), request, '').outcome
}

test('the source accepts what the package signs, and the package accepts what the tests sign', () => {
  expect(outcomeOf(signed(BODY))).toBe('accepted')
  const [one] = cases
  const header = one?.request(SECRET, NOW).headers['stripe-signature'] ?? ''
  expect(webhooks.constructEvent(BODY, header, SECRET, 300, undefined, NOW).type).toBe('invoice.paid')
})

test('during a rotation of the secret, several signatures and several secrets are accepted', () => {
  const both = `${signed(BODY, 'whsec_old')},${signed(BODY).split(',')[1]}`
  expect(outcomeOf(both)).toBe('accepted')
  expect(outcomeOf(signed(BODY), ['whsec_new', SECRET])).toBe('accepted')
  expect(outcomeOf(signed(BODY).replace('v1=', 'v0='))).toBe('SIGNATURE_MISSING')
})

test('of several signatures the first 32 are compared', () => {
  const [time, genuine] = signed(BODY).split(',')
  const after = (n: number): string =>
    outcomeOf([time, ...Array.from({ length: n }, (_, at) => `v1=${String(at).padStart(64, '0')}`), genuine].join(','))
  expect([after(31), after(32)]).toEqual(['accepted', 'SIGNATURE_WRONG'])
})

test('an event that contains its object has its names', () => {
  const body = Buffer.from(BODY)
  expect(stripe({ secret: SECRET }).events(requestOf({ body }))).toEqual([
    {
      type: 'invoice.paid',
      dedupeId: 'evt_1MqqbKLt4dXK03v5qaIbiNCC',
      subject: 'in_1MtHbELkdIwHu7ixl4OzzPMv',
      tenant: 'acct_1032D82eZvKYlo2C',
      time: NOW - 2_000,
      body,
    },
  ])
})

test('a thin event has its names', () => {
  const body = JSON.stringify({
    id: 'evt_test_65R9Ijk8dKEYZcXeRWn16R9A7j1FSQ3w3TGDPLLGSM4CW0',
    object: 'v2.core.event',
    type: 'v1.billing.meter.error_report_triggered',
    created: '2026-01-15T11:58:41.000Z',
    related_object: { id: 'mtr_test_61RCjiqdTDC91zgip41IqPCzPnxqqSVc', type: 'billing.meter' },
  })
  expect(stripe({ secret: SECRET }).events(requestOf({ body }))).toMatchObject([
    {
      type: 'v1.billing.meter.error_report_triggered',
      subject: 'mtr_test_61RCjiqdTDC91zgip41IqPCzPnxqqSVc',
      time: NOW - 79_000,
    },
  ])
})

test('a body without id or type is rejected', () => {
  for (const body of ['{}', '[]', '{"id":"evt_1"}', '{"type":"a"}', 'x']) {
    expect(stripe({ secret: SECRET }).events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
  }
})

test('an infinite tolerance and an unknown option are rejected', () => {
  expect(() => stripe({ secret: SECRET, tolerance: Infinity })).toThrow(/CONFIG_INVALID: stripe: tolerance/)
  expect(() => stripe({ secret: SECRET, tolerance: 0 })).toThrow(/CONFIG_INVALID: stripe: tolerance/)
  expect(() => stripe({ secret: SECRET, tolerence: '5m' } as never)).toThrow(/tolerence is not an option/)
})
