// A valid request with a user name and a password, and the expected result of each fault. Only these two are verified.
import { basic } from '../../../src/sources/credentials.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const cases: readonly SourceCase[] = [
  {
    name: 'basic',
    build: (secret) => basic({ username: 'hooks', secret, id: 'id' }),
    secret: 'open: sesame',
    wrongSecret: 'close: sesame',
    request: (secret) => {
      const authorization = `Basic ${Buffer.from(`hooks:${secret}`).toString('base64')}`
      return requestOf({ body: '{"id":"7","type":"ping"}', headers: { authorization } })
    },
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
