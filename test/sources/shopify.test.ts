// Tests Shopify: the source accepts what Shopify's own package signs, and the package accepts what the tests sign.
import { ApiVersion, LogSeverity, shopifyApi } from '@shopify/shopify-api'
import { getHmac } from '@shopify/shopify-api/test-helpers'
import { expect, test } from 'vitest'
import { shopify } from '../../src/sources/shopify.ts'
import { cases } from './cases/shopify.ts'
import { NOW, receive, requestOf, withHeader } from './faults.ts'

// The package must know its runtime.
await import('@shopify/shopify-api/adapters/web-api')

const SECRET = 'hush'
const vendor = shopifyApi({
  apiKey: 'key',
  apiSecretKey: SECRET,
  hostName: 'hooks.example.com',
  apiVersion: ApiVersion.January26,
  isEmbeddedApp: false,
  logger: { level: LogSeverity.Error },
})

test.each(cases)(
  '$name: the source accepts what the package signs, and the package accepts what the tests sign',
  async (one) => {
    const request = one.request(SECRET, NOW)
    const rawBody = Buffer.from(request.body).toString()
    const signature = Object.keys(request.headers).find((name) => name.endsWith('hmac-sha256')) ?? ''
    const signed = withHeader(request, signature, getHmac(rawBody, SECRET))
    expect(receive(one.build(SECRET), signed, '').outcome).toBe('accepted')
    const rawRequest = new Request(request.url, { method: 'POST', headers: { ...request.headers }, body: rawBody })
    expect(await vendor.webhooks.validate({ rawBody, rawRequest })).toMatchObject({ valid: true })
  },
)

test('a webhook has its names', () => {
  const request = cases[0]?.request(SECRET, NOW) ?? requestOf({ body: '' })
  expect(shopify({ secret: SECRET }).events(request)).toEqual([
    {
      type: 'orders/create',
      dedupeId: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
      tenant: 'example.myshopify.com',
      subject: 'gid://shopify/Order/820982',
      time: NOW - 877,
      body: request.body,
    },
  ])
})

test('an event has its names: the action is part of the type', () => {
  const request = cases[1]?.request(SECRET, NOW) ?? requestOf({ body: '' })
  expect(shopify({ secret: SECRET }).events(request)).toMatchObject([
    { type: 'Product/update', tenant: 'example.myshopify.com' },
  ])
})

test('after a rotation the old secret is valid too, if it is configured', () => {
  const request = cases[0]?.request(SECRET, NOW) ?? requestOf({ body: '' })
  expect(receive(shopify({ secret: ['new', SECRET] }), request, '').outcome).toBe('accepted')
  expect(receive(shopify({ secret: 'new' }), request, '').outcome).toBe('SIGNATURE_WRONG')
})

test('an id beyond the precision of a number keeps its digits', () => {
  const headers = { 'x-shopify-topic': 'orders/create' }
  const events = shopify({ secret: SECRET }).events(requestOf({ body: '{"id":12345678901234567891}', headers }))
  expect(events).toMatchObject([{ subject: '12345678901234567891' }])
})
