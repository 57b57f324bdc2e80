// Tests Twilio: its own package signs and verifies like the source; the URL as Twilio called it, in all its spellings.
import twilioPackage from 'twilio'
import { describe, expect, test } from 'vitest'
import type { ReceivedRequest, SourceEvent } from '../../src/receive/source.ts'
import { twilio } from '../../src/sources/twilio.ts'
import { cases, signedForm, signedJson } from './cases/twilio.ts'
import { NOW, receive, requestOf, withHeader } from './faults.ts'

const { getExpectedBodyHash, getExpectedTwilioSignature, validateRequest, validateRequestWithBody } = twilioPackage
const SECRET = '12345678901234567890123456789012'
const HEADER = 'x-twilio-signature'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

interface Called {
  readonly url: string
  /** The URL as Twilio signed it, if the request arrives with another one. */
  readonly signedUrl?: string
  readonly fields?: Readonly<Record<string, string | string[]>>
}

function byVendor({ url, signedUrl = url, fields = { Body: 'hi' } }: Called): ReceivedRequest {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(name, one)
  const signature = getExpectedTwilioSignature(SECRET, signedUrl, fields)
  return requestOf({ url, body: body.toString(), headers: { ...FORM, [HEADER]: signature } })
}

function outcomeOf(request: ReceivedRequest, url?: string): string {
  return receive(twilio({ secret: SECRET, ...(url !== undefined && { url }) }), request, '').outcome
}

test('the test vector of the package is accepted', () => {
  const fields = {
    CallSid: 'CA1234567890ABCDE',
    Caller: '+14158675309',
    Digits: '1234',
    From: '+14158675309',
    To: '+18005551212',
  }
  const request = requestOf({
    url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
    body: new URLSearchParams(fields).toString(),
    headers: { ...FORM, [HEADER]: 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' },
  })
  expect(receive(twilio({ secret: '12345' }), request, '').outcome).toBe('accepted')
})

describe('the source accepts what the package signs', () => {
  const url = 'https://hooks.example.com/in/twilio'
  test.each<readonly [string, Called]>([
    ['a form', { url }],
    ['with a query', { url: `${url}?a=1&b=x%20y` }],
    ['several values of a name, repeated and out of order', { url, fields: { B: ['2', '1', '2'], a: 'x' } }],
    ['umlauts, emoji and spaces at the ends', { url, fields: { Body: ' Grüße 👋 ', From: '+1' } }],
    ['with its port', { url, signedUrl: 'https://hooks.example.com:443/in/twilio' }],
    ['without its port', { url: 'https://hooks.example.com:8443/in', signedUrl: 'https://hooks.example.com/in' }],
    ['with another port', { url: 'https://hooks.example.com:8443/in' }],
    ['without TLS, with its port', { url: 'http://example.com/in', signedUrl: 'http://example.com:80/in' }],
    ['an IPv6 address', { url: 'https://[2001:db8::1]/in', signedUrl: 'https://[2001:db8::1]:443/in' }],
    ['a quote in the query as it is', { url: `${url}?n=O'Hara`, signedUrl: `${url}?n=O'Hara` }],
    [
      'a quote in the query, and the port',
      { url: `${url}?n=O'Hara`, signedUrl: "https://hooks.example.com:443/in/twilio?n=O'Hara" },
    ],
  ])('%s', (_, called) => {
    expect(outcomeOf(byVendor(called))).toBe('accepted')
  })

  test.each([
    ["?a='x&t=10:30", ''],
    ['?a=b+c', ''],
    ['?a=%7e', ''],
    ['?a="b"', ''],
    ['?a', ''],
    ['?', ''],
    ['?a={b}|c', ''],
    ['?x=%zz', ''],
    ['', '/"{a}"'],
  ])('the exact URL, with %s at its end', (query, more) => {
    const called = `https://Hooks.example.com/in/twilio${more}${query}`
    const request = { ...byVendor({ url: called, signedUrl: called }), calledUrl: called }
    expect(validateRequest(SECRET, request.headers[HEADER] ?? '', called, { Body: 'hi' })).toBe(true)
    expect(outcomeOf(request)).toBe('accepted')
    const behind = {
      ...request,
      url: new URL(`http://10.0.0.5${more}${query}`),
      calledUrl: `http://10.0.0.5/x${query}`,
    }
    expect(outcomeOf(behind)).toBe('SIGNATURE_WRONG')
    expect(outcomeOf(behind, `https://Hooks.example.com/in/twilio${more}`)).toBe('accepted')
    // The URL is still the signed one.
    expect(outcomeOf({ ...request, calledUrl: called.replace('/in/', '/on/') })).toBe('SIGNATURE_WRONG')
  })

  test('JSON with the hash of the body in the URL', () => {
    const body = '{"a":1}'
    const called = `${url}?bodySHA256=${getExpectedBodyHash(body)}`
    const request = requestOf({
      url: called,
      body,
      headers: { [HEADER]: getExpectedTwilioSignature(SECRET, called, {}) },
    })
    expect(outcomeOf(request)).toBe('accepted')
    expect(outcomeOf({ ...request, body: Buffer.from('{"a":2}') })).toBe('SIGNATURE_WRONG')
  })
})

test('the package accepts what the tests sign', () => {
  const form = signedForm(SECRET)
  const fields = Object.fromEntries(new URLSearchParams(Buffer.from(form.body).toString()))
  expect(validateRequest(SECRET, form.headers[HEADER] ?? '', form.url.href, fields)).toBe(true)
  const json = signedJson(SECRET, '[]')
  expect(validateRequestWithBody(SECRET, json.headers[HEADER] ?? '', json.url.href, '[]')).toBe(true)
})

test('behind a proxy, the public URL is configured, and the query comes from the request', () => {
  const inside = 'http://10.0.0.5:3000/in/twilio?a=1'
  const request = byVendor({ url: inside, signedUrl: 'https://user:pass@Hooks.example.com/in/twilio?a=1' })
  expect(outcomeOf(request)).toBe('SIGNATURE_WRONG')
  expect(outcomeOf(request, 'https://user:pass@Hooks.example.com/in/twilio')).toBe('accepted')
  for (const url of ['', 'hooks.example.com', 'https://x/?a=1', 'https://x/#rc=2', 'ftp://x/']) {
    expect(() => twilio({ secret: SECRET, url })).toThrow(/CONFIG_INVALID: twilio: url/)
  }
})

test('a body that is not signed is rejected, although the URL is signed', () => {
  const url = 'https://hooks.example.com/in/twilio'
  const headers = { [HEADER]: getExpectedTwilioSignature(SECRET, url, {}) }
  expect(outcomeOf(requestOf({ url, body: '{"forged":1}', headers }))).toBe('CONTENT_TYPE_WRONG')
  expect(outcomeOf(requestOf({ url, body: 'forged=1', headers: { ...headers, ...FORM } }))).toBe('SIGNATURE_WRONG')
})

test('a field without = is rejected, because it has the same signature as another name and value', () => {
  const form = signedForm(SECRET, { Body: 'hi' })
  expect(outcomeOf({ ...form, body: Buffer.from('Body=hi') })).toBe('accepted')
  for (const body of ['Bodyhi', 'Body&hi', 'Body=hi&']) {
    expect(outcomeOf({ ...form, body: Buffer.from(body) })).toBe('SIGNATURE_WRONG')
  }
})

function eventsOf(request: ReceivedRequest): readonly SourceEvent[] {
  const events = twilio({ secret: SECRET }).events(request)
  if ('code' in events) throw new Error(events.what)
  return events
}

test('a message has its names, and its fields as JSON', () => {
  const [event] = eventsOf(signedForm(SECRET))
  expect(event).toMatchObject({
    type: 'message.received',
    dedupeId: 'SM00000000000000000000000000000001/received',
    subject: 'SM00000000000000000000000000000001',
    tenant: 'AC00000000000000000000000000000001',
  })
  expect(JSON.parse(Buffer.from(event?.body ?? []).toString())).toMatchObject({
    Body: 'Hello, world & all',
    NumMedia: '0',
  })
})

test.each([
  [{ CallSid: 'CA1', CallStatus: 'ringing' }, 'call.ringing'],
  [{ CallSid: 'CA1', RecordingSid: 'RE1', RecordingStatus: 'completed' }, 'recording.completed'],
  [{ MessageSid: 'SM1', MessageStatus: 'delivered', SmsStatus: 'delivered' }, 'message.delivered'],
  [{ ConversationSid: 'CH1', EventType: 'onMessageAdded' }, 'onMessageAdded'],
  [{ ConferenceSid: 'CF1', StatusCallbackEvent: 'participant-join' }, 'participant-join'],
  [{ Digits: '1' }, 'received'],
])('the type of %j is %s', (fields, type) => {
  const request = withHeader(signedForm(SECRET, fields), 'i-twilio-idempotency-token', 'token-1')
  const [event] = eventsOf(request)
  expect(event).toMatchObject({ type, dedupeId: 'MessageSid' in fields ? 'SM1/delivered' : 'token-1' })
})

test('an event stream has one event for each of its items', () => {
  const request = cases[1]?.request(SECRET, NOW) ?? requestOf({ body: '' })
  expect(eventsOf(request)).toMatchObject([
    { type: 'com.twilio.messaging.message.delivered', dedupeId: 'EZ1', tenant: 'AC1' },
    { type: 'com.twilio.messaging.message.read', dedupeId: 'EZ2', time: NOW - 3_600_000 },
  ])
  const source = twilio({ secret: SECRET })
  for (const body of ['[1]', '[{}]', '[{"type":"a"}]', '[', '{']) {
    expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
  }
})

test('the response is TwiML', () => {
  expect(twilio({ secret: SECRET }).answer).toEqual({
    status: 200,
    headers: { 'content-type': 'text/xml' },
    body: '<Response></Response>',
  })
  const twiml = '<Response><Say>Moment</Say></Response>'
  expect(twilio({ secret: SECRET, twiml }).answer?.body).toBe(twiml)
})
