// Tests Slack: its own package accepts what the tests sign; handshakes, events, commands and interactions.
import { isValidSlackRequest } from '@slack/bolt'
import { expect, test } from 'vitest'
import type { Handshake } from '../../src/receive/source.ts'
import { slack } from '../../src/sources/slack.ts'
import { cases, CLICK, COMMAND, EVENT, signedRequest } from './cases/slack.ts'
import { NOW, receive, requestOf, withHeader } from './faults.ts'

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5'
const source = slack({ secret: SECRET })

test('@slack/bolt accepts what the tests sign, and rejects what the source rejects', () => {
  for (const one of cases) {
    const { headers, body } = one.request(one.secret, NOW)
    const isValid = (signingSecret: string): boolean =>
      isValidSlackRequest({
        signingSecret,
        body: Buffer.from(body).toString(),
        headers: {
          'x-slack-signature': headers['x-slack-signature'] ?? '',
          'x-slack-request-timestamp': Number(headers['x-slack-request-timestamp']),
        },
        nowMilliseconds: NOW,
      })
    expect([isValid(one.secret), isValid(one.wrongSecret)]).toEqual([true, false])
  }
})

function greeted(body: string): ReturnType<Handshake['answer']> {
  return source.handshake?.answer(signedRequest(body, SECRET, NOW))
}

test('the challenge gets a JSON response, and only if it is signed', () => {
  const body = '{"token":"x","challenge":"<script>3eZbrw1aB","type":"url_verification"}'
  expect(greeted(body)).toMatchObject({
    kind: 'answer',
    answer: {
      status: 200,
      headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
      body: '{"challenge":"<script>3eZbrw1aB"}',
    },
  })
  expect(receive(source, signedRequest(body, SECRET, NOW), '').outcome).toBe('answered')
  expect(receive(source, requestOf({ body }), '').outcome).toBe('SIGNATURE_MISSING')
  expect(greeted('{"challenge":7,"type":"url_verification"}')).toMatchObject({ kind: 'refused' })
})

test('a check of the certificate gets a response and is no event', () => {
  expect(greeted('ssl_check=1&token=x')).toEqual({ kind: 'answer', answer: { status: 200 } })
  expect(greeted('ssl_check=0&command=x')).toBeUndefined()
})

test('an event has its names', () => {
  expect(source.events(signedRequest(EVENT, SECRET, NOW))).toEqual([
    {
      type: 'app_mention',
      dedupeId: 'Ev123ABC456',
      tenant: 'T123ABC456',
      subject: 'C123ABC456',
      time: NOW - 2_000,
      body: Buffer.from(EVENT),
    },
  ])
})

function subjectOf(event: object): unknown {
  const events = source.events(requestOf({ body: JSON.stringify({ type: 'event_callback', event_id: '1', event }) }))
  return 'code' in events ? events : events[0]?.subject
}

test('the channel of a reaction is that of its item; that of a new channel is its id', () => {
  expect(subjectOf({ type: 'reaction_added', user: 'U1', item: { channel: 'C1' } })).toBe('C1')
  expect(subjectOf({ type: 'channel_created', channel: { id: 'C2' } })).toBe('C2')
  expect(subjectOf({ type: 'team_join', user: { id: 'U2' } })).toBe('U2')
})

test('a slash command becomes JSON for its handler', () => {
  const events = source.events(signedRequest(COMMAND, SECRET, NOW))
  expect(events).toMatchObject([
    {
      type: 'slash_command',
      dedupeId: '13345224609.738474920.8088930838d88f008e0',
      tenant: 'T123ABC456',
      subject: 'C2147483705',
    },
  ])
  const data: unknown = 'code' in events ? events : JSON.parse(Buffer.from(events[0]?.body ?? []).toString())
  expect(data).toMatchObject({ command: '/weather', text: '94070' })
})

test('an interaction is the JSON in its form', () => {
  expect(source.events(signedRequest(CLICK, SECRET, NOW))).toMatchObject([
    { type: 'block_actions', dedupeId: '13.37.ab', tenant: 'T123ABC456', subject: 'C123' },
  ])
})

test('a request without an id is recognised by its signature', () => {
  const request = signedRequest('{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1}', SECRET, NOW)
  expect(source.events(request)).toMatchObject([
    { type: 'app_rate_limited', dedupeId: request.headers['x-slack-signature'], tenant: 'T1' },
  ])
})

test('another content type does not make the same signed bytes another event', () => {
  const text = '&command=/deploy&team_id=T1'
  const body = JSON.stringify({ type: 'event_callback', event_id: 'E', event: { type: 'message', text } })
  const request = signedRequest(body, SECRET, NOW)
  const asForm = withHeader(request, 'content-type', 'application/x-www-form-urlencoded')
  expect(receive(source, asForm, '')).toEqual(receive(source, request, ''))
})

test('a request of an unknown kind is rejected', () => {
  for (const body of ['{}', '', 'a=b', 'payload=x', 'payload={}', 'payload=[]', '{"event":{}}']) {
    expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
  }
})
