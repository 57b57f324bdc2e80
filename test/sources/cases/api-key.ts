// Valid requests with a key in a header and in the query, and the expected result of each fault. Only the key is verified.
import { apiKey } from '../../../src/sources/credentials.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = '{"id":"7","type":"ping"}'
const EXPECTED = {
  bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'],
  wrongSecret: 'CREDENTIALS_WRONG',
  old: 'accepted',
  future: 'accepted',
  replayed: 'duplicate',
  contentType: 'accepted',
} as const

export const cases: readonly SourceCase[] = [
  {
    name: 'apiKey in a header',
    build: (secret) => apiKey({ secret, id: 'id' }),
    secret: 'k-123456',
    wrongSecret: 'k-123457',
    request: (secret) => requestOf({ body: BODY, headers: { 'x-api-key': secret } }),
    expected: {
      ...EXPECTED,
      headerChanged: { 'x-api-key': 'CREDENTIALS_WRONG' },
      headerMissing: { 'x-api-key': 'CREDENTIALS_MISSING' },
    },
    isForged: ({ headers }) => headers['x-api-key'] !== 'k-123456',
  },
  {
    name: 'apiKey in the query',
    build: (secret) => apiKey({ secret, query: 'key', id: 'id' }),
    secret: 'k 1+2&3',
    wrongSecret: 'k 1+2&4',
    request: (secret) => requestOf({ body: BODY, url: `https://hooks.example.com/?key=${encodeURIComponent(secret)}` }),
    expected: { ...EXPECTED, headerChanged: {}, headerMissing: {} },
    isForged: ({ url }) => url.searchParams.get('key') !== 'k 1+2&3',
  },
]
