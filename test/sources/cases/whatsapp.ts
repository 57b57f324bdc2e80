// A valid POST of Meta's Cloud API, signed with the app secret, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { whatsapp } from '../../../src/sources/whatsapp.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  object: 'whatsapp_business_account',
  entry: [
    {
      id: '102290129340398',
      changes: [
        {
          field: 'messages',
          value: {
            messaging_product: 'whatsapp',
            metadata: { display_phone_number: '15550783881', phone_number_id: '106540352242922' },
            contacts: [{ profile: { name: 'Zoë 🦊' }, wa_id: '16505551234', user_id: 'US.13491208655302741918' }],
            messages: [
              {
                from: '16505551234',
                id: 'wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTAzODEwMTQ0RgA=',
                timestamp: '1749416383',
                type: 'text',
                text: { body: 'Does it come in another colour?' },
              },
            ],
          },
        },
      ],
    },
  ],
})

export const cases: readonly SourceCase[] = [
  {
    name: 'whatsapp',
    build: (secret) => whatsapp({ secret, verifyToken: 'apricot' }),
    secret: 'f5e2c9a1b0d34e6f8a7b6c5d4e3f2a1b',
    wrongSecret: 'f5e2c9a1b0d34e6f8a7b6c5d4e3f2a1c',
    request: (secret) =>
      requestOf({
        body: BODY,
        headers: { 'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}` },
      }),
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: { 'x-hub-signature-256': 'SIGNATURE_WRONG' },
      headerMissing: { 'x-hub-signature-256': 'SIGNATURE_MISSING' },
      wrongSecret: 'SIGNATURE_WRONG',
      // Meta signs no timestamp.
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
]
