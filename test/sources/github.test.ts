// Tests GitHub: the source accepts what GitHub's own package signs, and the package accepts what the tests sign.
import { sign, verify } from '@octokit/webhooks-methods'
import { expect, test } from 'vitest'
import { github } from '../../src/sources/github.ts'
import { cases } from './cases/github.ts'
import { NOW, receive, requestOf, withHeader } from './faults.ts'

const SECRET = "It's a Secret to Everybody"
const SIGNATURE = 'x-hub-signature-256'

test('the test vector of the documentation is accepted', () => {
  const source = github({ secret: SECRET })
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  const request = requestOf({ body: 'Hello, World!', headers: { [SIGNATURE]: signature } })
  expect(source.verify).not.toBe('none')
  if (source.verify === 'none') return
  expect(source.verify(request, { now: NOW, secrets: [SECRET] })).toBeUndefined()
})

test('the source accepts what @octokit/webhooks-methods signs, which accepts what the tests sign', async () => {
  for (const one of cases) {
    const request = one.request(one.secret, NOW)
    const body = Buffer.from(request.body).toString()
    const signed = withHeader(request, SIGNATURE, await sign(one.secret, body))
    expect(receive(one.build(one.secret), signed, one.secret).outcome).toBe('accepted')
    expect(await verify(one.secret, body, request.headers[SIGNATURE] ?? '')).toBe(true)
  }
})

test('event and action are the type, the repository is the subject, the delivery is the dedupe id', () => {
  const [one] = cases
  const request = one?.request(one.secret, NOW) ?? requestOf({ body: '' })
  expect(github({ secret: SECRET }).events(request)).toEqual([
    {
      type: 'issues.opened',
      subject: 'octo/hello',
      dedupeId: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      body: request.body,
    },
  ])
})
