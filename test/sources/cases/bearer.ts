// A valid request with a bearer token, and the expected result of each fault. Only the token is verified.
import { bearer } from '../../../src/sources/credentials.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const cases: readonly SourceCase[] = [
  {
    name: 'bearer',
    build: (secret) => bearer({ secret, id: 'id' }),
    secret: 'mF_9.B5f-4.1JqM',
    wrongSecret: 'mF_9.B5f-4.1JqN',
    request: (secret) =>
      requestOf({ body: '{"id":"7","type":"ping"}', headers: { authorization: `Bearer ${secret}` } }),
    expected: {
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'],
      headerChanged: { authorization: ['CREDENTIALS_WRONG', 'CREDENTIALS_MISSING'] },
      headerMissing: { authorization: 'CREDENTIALS_MISSING' },
      wrongSecret: 'CREDENTIALS_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: ({ headers }, genuine) =>
      headers['authorization']?.trim().split(/ +/)[1] !== genuine.headers['authorization']?.split(' ')[1],
  },
]
