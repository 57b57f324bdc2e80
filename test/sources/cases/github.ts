// A valid delivery of GitHub, signed as its documentation says, and the expected result of each fault.
import { createHmac } from 'node:crypto'
import { github } from '../../../src/sources/github.ts'
import { requestOf, type SourceCase } from '../faults.ts'

const BODY = JSON.stringify({ action: 'opened', issue: { number: 7 }, repository: { full_name: 'octo/hello' } })

export const cases: readonly SourceCase[] = [
  {
    name: 'github',
    build: (secret) => github({ secret }),
    secret: "It's a Secret to Everybody",
    wrongSecret: 'It is no secret to anybody',
    request: (secret) =>
      requestOf({
        body: BODY,
        headers: {
          'x-github-event': 'issues',
          'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
          'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`,
        },
      }),
    expected: {
      bodyChanged: 'SIGNATURE_WRONG',
      headerChanged: {
        'x-hub-signature-256': 'SIGNATURE_WRONG',
        // GitHub signs only the body.
        'x-github-event': 'accepted',
        'x-github-delivery': 'accepted',
      },
      headerMissing: {
        'x-hub-signature-256': 'SIGNATURE_MISSING',
        'x-github-event': 'BODY_NOT_UNDERSTOOD',
        'x-github-delivery': 'accepted',
      },
      wrongSecret: 'SIGNATURE_WRONG',
      old: 'accepted',
      future: 'accepted',
      replayed: 'duplicate',
      contentType: 'accepted',
    },
  },
]
