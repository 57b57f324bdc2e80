// A valid event of Stripe, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { stripe } from '../../../src/sources/stripe.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const BODY = JSON.stringify({
  id: 'evt_1MqqbKLt4dXK03v5qaIbiNCC',
  object: 'event',
  account: 'acct_1032D82eZvKYlo2C',
  created: 1_768_478_398,
  type: 'invoice.paid',
  data: { object: { id: 'in_1MtHbELkdIwHu7ixl4OzzPMv', object: 'invoice' } },
})

export const cases: readonly SourceCase[] = [
  {
    name: 'stripe',
    build: (secret) => stripe({ secret }),
    secret: 'whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH',
    wrongSecret: 'whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FI',
    request: (secret, at) => {
      const seconds = Math.floor(at / 1_000)
      const mac = createHmac('sha256', secret).update(`${seconds}.${BODY}`).digest('hex')
      return requestOf({ body: BODY, headers: { 'stripe-signature': `t=${seconds},v1=${mac}` } })
    },
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      // If the name v1 or the comma before it is changed, there is no signature.
      headerChanged: { 'stripe-signature': ['SIGNATURE_WRONG', 'SIGNATURE_MISSING'] },
      headerMissing: { 'stripe-signature': 'SIGNATURE_MISSING' },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'TIMESTAMP_OLD',
      future: 'TIMESTAMP_IN_FUTURE',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
]
