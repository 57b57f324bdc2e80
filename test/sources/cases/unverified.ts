// A request that proves nothing: all that a fault can come to is that it cannot be read.
import { unverified } from '../../../src/sources/credentials.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const cases: readonly SourceCase[] = [
  {
    name: "verify: 'none'",
    // Not said in so many words, it does not build either.
    build: (secret) => unverified({ verify: secret as 'none', id: 'id' }),
    secret: 'none',
    wrongSecret: 'some',
    request: () => requestOf({ body: '{"id":"7","type":"ping"}' }),
    expected: {
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'],
      headerChanged: {},
      headerMissing: {},
      wrongSecret: 'accepted',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
    isForged: () => false,
  },
]
