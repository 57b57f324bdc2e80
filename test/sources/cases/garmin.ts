// A valid push of Garmin with the client id, and the expected result of each fault. Nothing is signed.
import { garmin } from '../../../src/sources/garmin.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({
  sleeps: [
    { userId: '4aacafe82427c251df9c9592d0c06768', summaryId: 'x153a9f3-5a9478d4-6', startTimeInSeconds: 1519679700 },
    { userId: '5bbdbff93538d362e0ad06a3e1d17879', summaryId: 'x153a9f3-5a9478d4-7', startTimeInSeconds: 1519679760 },
  ],
})

export const cases: readonly SourceCase[] = [
  {
    name: 'garmin',
    build: (secret) => garmin({ clientId: secret, addresses: ['203.0.113.0/24'] }),
    secret: '3f6e4d2c-1b0a-4987-8654-3210fedcba98',
    wrongSecret: '3f6e4d2c-1b0a-4987-8654-3210fedcba99',
    request: (secret) => requestOf({ body: BODY, headers: { 'garmin-client-id': secret } }),
    expected: {
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'],
      headerChanged: { 'garmin-client-id': 'CREDENTIALS_WRONG' },
      headerMissing: { 'garmin-client-id': 'CREDENTIALS_MISSING' },
      wrongSecret: 'CREDENTIALS_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: (request, genuine) => request.headers['garmin-client-id'] !== genuine.headers['garmin-client-id'],
  },
]
