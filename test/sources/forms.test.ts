// R4: a form is parsed in linear time, and one with too many fields is rejected.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { ReceivedRequest, Source } from '../../src/receive/source.ts'
import { unverified } from '../../src/sources/credentials.ts'
import { slack } from '../../src/sources/slack.ts'
import { twilio } from '../../src/sources/twilio.ts'
import { NOW, receive, requestOf } from './faults.ts'

const MOST = 10_000
const TOKEN = 'token'
const FORM = 'application/x-www-form-urlencoded'

function fields(n: number): string {
  return Array.from({ length: n }, (_, at) => `a${at}=`).join('&')
}

function toTwilio(body: string): ReceivedRequest {
  return requestOf({ body, headers: { 'content-type': FORM, 'x-twilio-signature': 'made up' } })
}

function toSlack(body: string): ReceivedRequest {
  const seconds = String(NOW / 1_000)
  const mac = createHmac('sha256', TOKEN).update(`v0:${seconds}:${body}`).digest('hex')
  const headers = { 'x-slack-signature': `v0=${mac}`, 'x-slack-request-timestamp': seconds }
  return requestOf({ body, headers: { 'content-type': FORM, ...headers } })
}

function toAnybody(body: string): ReceivedRequest {
  return requestOf({ body, headers: { 'content-type': FORM } })
}

describe.each<readonly [string, Source, (body: string) => ReceivedRequest, string]>([
  ['twilio, unsigned', twilio({ secret: TOKEN }), toTwilio, 'SIGNATURE_WRONG'],
  ['slack, signed', slack({ secret: TOKEN }), toSlack, 'accepted'],
  ['unverified', unverified({ verify: 'none' }), toAnybody, 'accepted'],
])('%s', (_, source, sent, usual) => {
  test(`a form of ${MOST} names is accepted`, () => {
    const request = sent(`command=x&${fields(MOST - 1)}`)
    expect(receive(source, request, TOKEN).outcome).toBe(usual)
  })

  test('a form with one field more, or with a hundred thousand, is rejected', () => {
    for (const n of [MOST + 1, 100_000]) {
      const request = sent(fields(n))
      expect(receive(source, request, TOKEN).outcome).toBe('BODY_NOT_UNDERSTOOD')
    }
  })
})
