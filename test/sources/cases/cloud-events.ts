// A valid CloudEvent in each mode with a bearer token, and the expected result of each fault. Nothing is signed.
import type { ReceivedRequest } from '../../../src/receive/source.ts'
import { cloudEvents } from '../../../src/sources/cloud-events.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const EVENT = {
  specversion: '1.0',
  id: 'A234-1234-1234',
  source: '/mycontext/subcontext',
  type: 'com.example.someevent',
  time: '2018-04-05T17:31:00Z',
  data: { appinfo: 'ABC' },
}

const shared = {
  build: (secret: string) => cloudEvents({ token: secret }),
  secret: 'dGhlIHRva2Vu',
  wrongSecret: 'dGhlIHRva2Vv',
  isForged: (request: ReceivedRequest, genuine: ReceivedRequest): boolean => tokenIn(request) !== tokenIn(genuine),
} as const

function tokenIn({ headers }: ReceivedRequest): string | undefined {
  return headers['authorization']?.replace(/^bearer +/i, '')
}

const expected = {
  headerChanged: { authorization: ['CREDENTIALS_MISSING', 'CREDENTIALS_WRONG'] },
  headerMissing: { authorization: 'CREDENTIALS_MISSING' },
  wrongSecret: 'CREDENTIALS_WRONG',
  old: 'accepted',
  future: 'accepted',
  replayed: 'duplicate',
} as const

export const cases: readonly SourceCase[] = [
  {
    ...shared,
    name: 'cloud-events, binary',
    request: (secret) =>
      requestOf({
        body: JSON.stringify(EVENT.data),
        headers: {
          authorization: `Bearer ${secret}`,
          'ce-specversion': EVENT.specversion,
          'ce-id': EVENT.id,
          'ce-source': EVENT.source,
          'ce-type': EVENT.type,
          'ce-time': EVENT.time,
        },
      }),
    expected: {
      ...expected,
      bodyChanged: 'accepted',
      headerChanged: {
        ...expected.headerChanged,
        'ce-specversion': 'BODY_NOT_UNDERSTOOD',
        'ce-id': 'accepted',
        'ce-type': 'accepted',
      },
      headerMissing: {
        ...expected.headerMissing,
        'ce-specversion': 'BODY_NOT_UNDERSTOOD',
        'ce-id': 'BODY_NOT_UNDERSTOOD',
        'ce-source': 'BODY_NOT_UNDERSTOOD',
        'ce-type': 'BODY_NOT_UNDERSTOOD',
        'ce-time': 'accepted',
      },
      // The data is then text.
      contentType: 'accepted',
    },
  },
  ...(['cloudevents', 'cloudevents-batch'] as const).map((media) => ({
    ...shared,
    name: media === 'cloudevents' ? 'cloud-events, structured' : 'cloud-events, batch',
    request: (secret: string) =>
      requestOf({
        body: JSON.stringify(media === 'cloudevents' ? EVENT : [EVENT, { ...EVENT, id: 'A234-1234-1235' }]),
        headers: { authorization: `Bearer ${secret}`, 'content-type': `application/${media}+json` },
      }),
    expected: {
      ...expected,
      bodyChanged: ['accepted', 'BODY_NOT_UNDERSTOOD'] as const,
      // Without the content type, the source expects the binary mode, whose headers are missing.
      contentType: 'BODY_NOT_UNDERSTOOD' as const,
    },
  })),
]
