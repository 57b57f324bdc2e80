// A valid event of Strava, signed and unsigned, and the expected result of each fault. The subscription is always checked.
import { createHmac } from 'node:crypto'
import { strava } from '../../../src/sources/strava.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const bodyOf = (subscription: string): string =>
  `{"aspect_type":"update","event_time":1549560669,"object_id":13601239287612345678,"object_type":"activity","owner_id":9999999,"subscription_id":${subscription},"updates":{"title":"Messy"}}`

export const cases: readonly SourceCase[] = [
  {
    name: 'strava with a secret',
    build: (secret) => strava({ verifyToken: 'STRAVA', subscriptionId: 120475, secret }),
    secret: '7b2946535949ae70f015d696d8ac602830ece412',
    wrongSecret: '7b2946535949ae70f015d696d8ac602830ece413',
    request: (secret, at) => {
      const seconds = Math.floor(at / 1_000)
      const mac = createHmac('sha256', secret)
        .update(`${seconds}.${bodyOf('120475')}`)
        .digest('hex')
      return requestOf({ body: bodyOf('120475'), headers: { 'x-strava-signature': `t=${seconds},v1=${mac}` } })
    },
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: { 'x-strava-signature': 'SIGNATURE_WRONG' },
      headerMissing: { 'x-strava-signature': 'SIGNATURE_MISSING' },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'TIMESTAMP_OLD',
      future: 'TIMESTAMP_IN_FUTURE',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
  {
    name: 'strava by its subscription alone',
    build: (secret) => strava({ verifyToken: 'STRAVA', subscriptionId: secret }),
    secret: '120475',
    wrongSecret: '120474',
    request: (secret) => requestOf({ body: bodyOf(secret) }),
    expected: {
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD', 'CREDENTIALS_MISSING', 'CREDENTIALS_WRONG'],
      headerChanged: {},
      headerMissing: {},
      wrongSecret: 'CREDENTIALS_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: ({ body }) =>
      String((JSON.parse(Buffer.from(body).toString()) as { subscription_id?: unknown }).subscription_id) !== '120475',
  },
]
