// Signs for WhatsApp by Meta: a message of one person, an HMAC of the body.
import { requestBody, JSON_TYPE, computeMac, toSeconds, type Signer } from './signed.ts'

export const whatsapp: Signer = (asked) => {
  const message = {
    from: '15550100',
    id: `wamid.${asked.id}`,
    timestamp: toSeconds(asked.now),
    type: asked.type ?? 'text',
  }
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550199', phone_number_id: '1' },
    contacts: [{ profile: { name: 'Test' }, wa_id: '15550100' }],
    messages: [{ ...message, text: { body: 'A test.' } }],
  }
  const entry = [{ id: '1', changes: [{ field: 'messages', value }] }]
  const body = requestBody(asked, { object: 'whatsapp_business_account', entry })
  const signature = computeMac(asked.secret, [body], { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' })
  return { url: asked.url, headers: { ...JSON_TYPE, 'x-hub-signature-256': signature }, body }
}
