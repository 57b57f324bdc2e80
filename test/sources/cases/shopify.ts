// Valid webhooks of Shopify with both families of header names, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { shopify } from '../../../src/sources/shopify.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  id: 820_982_911_946_154_500,
  admin_graphql_api_id: 'gid://shopify/Order/820982',
  total: '1',
})

function caseOf(name: string, family: string, more: Readonly<Record<string, string>>): SourceCase {
  const named = (names: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(names).map(([header, value]) => [family + header, value]))
  return {
    name,
    build: (secret) => shopify({ secret }),
    secret: 'hush',
    wrongSecret: 'hash',
    request: (secret) =>
      requestOf({
        body: BODY,
        headers: named({
          'hmac-sha256': createHmac('sha256', secret).update(BODY).digest('base64'),
          'shop-domain': 'example.myshopify.com',
          'api-version': '2026-01',
          'webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
          'triggered-at': '2026-01-15T11:59:59.123456789Z',
          ...more,
        }),
      }),
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      // Shopify signs only the body.
      headerChanged: {
        [`${family}hmac-sha256`]: 'SIGNATURE_WRONG',
        [`${family}topic`]: 'accepted',
        [`${family}webhook-id`]: 'accepted',
        [`${family}shop-domain`]: 'accepted',
      },
      headerMissing: {
        [`${family}hmac-sha256`]: 'SIGNATURE_MISSING',
        [`${family}topic`]: 'BODY_NOT_UNDERSTOOD',
        [`${family}webhook-id`]: 'accepted',
      },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  }
}

export const cases: readonly SourceCase[] = [
  caseOf('shopify webhook', 'x-shopify-', { topic: 'orders/create' }),
  caseOf('shopify event', 'shopify-', { topic: 'Product', action: 'update' }),
]
