// Valid requests of custom senders that sign, with and without a timestamp, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { hmac } from '../../../src/sources/hmac.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  kind: 'order.created',
  order: { id: 'o-1', customer: 'c-9' },
  at: '2026-01-15T11:59:00Z',
})
const NAMES = {
  type: 'kind',
  id: 'header:x-delivery',
  subject: 'order.id',
  tenant: 'order.customer',
  time: 'at',
} as const
const SECRET = { secret: 'correct horse', wrongSecret: 'battery staple' }

export const cases: readonly SourceCase[] = [
  {
    name: 'hmac of the body',
    build: (secret) => hmac({ secret, header: 'X-Signature', encoding: 'base64', algorithm: 'sha512', ...NAMES }),
    ...SECRET,
    request: (secret) => {
      const mac = createHmac('sha512', secret).update(BODY).digest('base64')
      return requestOf({ body: BODY, headers: { 'x-signature': mac, 'x-delivery': 'd-1' } })
    },
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: { 'x-signature': 'SIGNATURE_WRONG', 'x-delivery': 'accepted' },
      headerMissing: { 'x-signature': 'SIGNATURE_MISSING', 'x-delivery': 'accepted' },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
  {
    name: 'hmac with a time',
    build: (secret) =>
      hmac({
        secret,
        header: 'x-signature',
        prefix: 'sha256=',
        timestamp: 'x-sent-at',
        signed: '{method}:{timestamp}:{header:x-delivery}:{body}',
        ...NAMES,
      }),
    ...SECRET,
    request: (secret, at) => {
      const mac = createHmac('sha256', secret).update(`POST:${at}:d-1:${BODY}`).digest('hex')
      const headers = { 'x-signature': `sha256=${mac}`, 'x-sent-at': String(at), 'x-delivery': 'd-1' }
      return requestOf({ body: BODY, headers })
    },
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: {
        'x-signature': 'SIGNATURE_WRONG',
        'x-sent-at': 'SIGNATURE_WRONG',
        'x-delivery': 'SIGNATURE_WRONG',
      },
      headerMissing: {
        'x-signature': 'SIGNATURE_MISSING',
        'x-sent-at': 'TIMESTAMP_MISSING',
        'x-delivery': 'SIGNATURE_MISSING',
      },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'TIMESTAMP_OLD',
      future: 'TIMESTAMP_IN_FUTURE',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: ({ body, headers }, genuine) =>
      !Buffer.from(body).equals(genuine.body) ||
      ['x-sent-at', 'x-delivery'].some((name) => headers[name] !== genuine.headers[name]),
  },
]
