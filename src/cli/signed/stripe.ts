// Stripe: time and body signed, in one header.
import { bodyOf, JSON_TYPE, macOf, secondsOf, type Signer } from './signed.ts'

export const stripe: Signer = (asked) => {
  const seconds = secondsOf(asked.now)
  const type = asked.type ?? 'customer.created'
  const data = { object: { id: 'cus_test', object: 'customer' } }
  const body = bodyOf(asked, { id: `evt_${asked.id}`, object: 'event', type, created: Number(seconds), data })
  const mac = macOf(asked.secret, [seconds, '.', body], { algorithm: 'sha256', encoding: 'hex' })
  return { url: asked.url, headers: { ...JSON_TYPE, 'stripe-signature': `t=${seconds},v1=${mac}` }, body }
}
