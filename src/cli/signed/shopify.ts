// Signs for Shopify: names in headers, an HMAC of the body in base64.
import { requestBody, JSON_TYPE, computeMac, type Signer } from './signed.ts'

export const shopify: Signer = (asked) => {
  const body = requestBody(asked, { id: 1, admin_graphql_api_id: 'gid://shopify/Order/1' })
  const headers = {
    'x-shopify-topic': asked.type ?? 'orders/create',
    'x-shopify-webhook-id': asked.id,
    'x-shopify-shop-domain': 'test.myshopify.com',
    'x-shopify-triggered-at': new Date(asked.now).toISOString(),
    'x-shopify-hmac-sha256': computeMac(asked.secret, [body], { algorithm: 'sha256', encoding: 'base64' }),
  }
  return { url: asked.url, headers: { ...JSON_TYPE, ...headers }, body }
}
