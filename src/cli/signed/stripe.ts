// Signs for Stripe: time and body, in one header.
import { requestBody, JSON_TYPE, computeMac, toSeconds, type Signer } from './signed.ts'

export const stripe: Signer = (asked) => {
  const seconds = toSeconds(asked.now)
  const type = asked.type ?? 'customer.created'
  const data = { object: { id: 'cus_test', object: 'customer' } }
  const body = requestBody(asked, { id: `evt_${asked.id}`, object: 'event', type, created: Number(seconds), data })
  const mac = computeMac(asked.secret, [seconds, '.', body], { algorithm: 'sha256', encoding: 'hex' })
  return { url: asked.url, headers: { ...JSON_TYPE, 'stripe-signature': `t=${seconds},v1=${mac}` }, body }
}
