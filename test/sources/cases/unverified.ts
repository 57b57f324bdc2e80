// A request without any proof: a fault can only make it unreadable.
import { unverified } from '../../../src/sources/credentials.ts'
import { requestOf, type SourceCase } from '../faults.ts'

export const cases: readonly SourceCase[] = [
  {
    name: "verify: 'none'",
    // Without an explicit `verify: 'none'`, the source is rejected.
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
