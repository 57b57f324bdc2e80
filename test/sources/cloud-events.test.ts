// Tests CloudEvents as the CloudEvents package writes them, in three modes, and rules that this package does not enforce.
import { createHmac } from 'node:crypto'
import { CloudEvent, HTTP } from 'cloudevents'
import { describe, expect, test } from 'vitest'
import type { Source, SourceEvent } from '../../src/receive/source.ts'
import { cloudEvents } from '../../src/sources/cloud-events.ts'
import { hmac } from '../../src/sources/hmac.ts'
import { receive, requestOf, type Outcome } from './faults.ts'

const TOKEN = 'dGhlIHRva2Vu'
const source = cloudEvents({ token: TOKEN, tenant: 'workspace' })

const EVENT = { specversion: '1.0', id: '1', source: '/shop', type: 'order.created' }
const HEADERS = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/shop', 'ce-type': 'order.created' }
const STRUCTURED = { 'content-type': 'application/cloudevents+json' }

function read(headers: Readonly<Record<string, string>>, body: string | Uint8Array): readonly SourceEvent[] {
  const events = source.events(requestOf({ headers, body }))
  if ('code' in events) throw new Error(events.what)
  return events
}

const structured = (event: object): SourceEvent | undefined => read(STRUCTURED, JSON.stringify(event))[0]
const bodyOf = (event: SourceEvent | undefined): string => Buffer.from(event?.body ?? '').toString()

function outcomeOf(headers: Readonly<Record<string, string>>, body: string): Outcome | undefined {
  const events = source.events(requestOf({ headers, body }))
  return 'code' in events ? events.code : 'accepted'
}

describe('cloudEvents', () => {
  test.each([HTTP.binary, HTTP.structured])('an event of the CloudEvents package is read correctly: %#', (send) => {
    const { headers, body } = send(
      new CloudEvent({
        ...EVENT,
        time: '2026-01-15T12:00:00.250Z',
        subject: 'order-7',
        workspace: 'acme',
        data: { total: 12, name: 'Zoë 🦊' },
      }),
    )
    const plain = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
    )
    const request = requestOf({ headers: { ...plain, authorization: `Bearer ${TOKEN}` }, body: String(body) })
    const { outcome, events } = receive(source, request, TOKEN)
    expect(outcome).toBe('accepted')
    expect(events).toMatchObject([
      {
        type: 'order.created',
        dedupeId: '/shop 1',
        subject: 'order-7',
        tenant: 'acme',
        time: Date.UTC(2026, 0, 15, 12, 0, 0, 250),
        attributes: { workspace: 'acme', cesource: '/shop', ceid: '1' },
      },
    ])
    expect(JSON.parse(bodyOf(events[0]))).toEqual({ total: 12, name: 'Zoë 🦊' })
  })

  test('binary data of the CloudEvents package has the same bytes', () => {
    const bytes = Uint8Array.from([0, 255, 1, 128, 10])
    const { body } = HTTP.structured(
      new CloudEvent({ ...EVENT, datacontenttype: 'image/png', data_base64: Buffer.from(bytes).toString('base64') }),
    )
    expect(Uint8Array.from(read(STRUCTURED, String(body))[0]?.body ?? [])).toEqual(bytes)
  })

  test('a batch has its events, and an empty one has none', () => {
    const headers = { 'content-type': 'application/cloudevents-batch+json; charset=UTF-8' }
    const events = read(
      headers,
      JSON.stringify([
        { ...EVENT, data: 1 },
        { ...EVENT, id: '2', data: 2 },
      ]),
    )
    expect(events.map((event) => [event.dedupeId, bodyOf(event)])).toEqual([
      ['/shop 1', '1'],
      ['/shop 2', '2'],
    ])
    expect(read(headers, '[]')).toEqual([])
    expect(outcomeOf(headers, JSON.stringify(EVENT))).toBe('BODY_NOT_UNDERSTOOD')
    expect(outcomeOf(headers, JSON.stringify([EVENT, {}]))).toBe('BODY_NOT_UNDERSTOOD')
  })

  test.each([
    ['application/cloudevents+json; charset=UTF-8', 'accepted'],
    ['Application/CloudEvents+JSON;charset="utf-8"', 'accepted'],
    ['application/cloudevents+json; charset=utf-16', 'CONTENT_TYPE_WRONG'],
    ['application/cloudevents+avro', 'CONTENT_TYPE_WRONG'],
    ['application/cloudevents', 'CONTENT_TYPE_WRONG'],
    ['application/cloudevents-batch+xml', 'CONTENT_TYPE_WRONG'],
    ['application/json', 'BODY_NOT_UNDERSTOOD'],
  ])('%s: %s', (type, outcome) => {
    expect(outcomeOf({ 'content-type': type }, JSON.stringify(EVENT))).toBe(outcome)
  })

  test.each([
    ['Euro%20%E2%82%AC%20%F0%9F%98%80', 'Euro € 😀'],
    ['%e2%82%ac%41', '€A'],
    ['"a b\\"c\\\\"', 'a b"c\\'],
    ['"Euro%20x"', 'Euro x'],
    ['%2525', '%25'],
    ['100% sure', '100% sure'],
    ['%EF%BB%BFx', '\uFEFFx'],
  ])('the header %s says %s', (header, subject) => {
    expect(read({ ...HEADERS, 'ce-subject': header }, '')[0]?.subject).toBe(subject)
  })

  test.each([
    ['ce-subject', '%C0%A0'],
    ['ce-subject', '%ED%A0%80'],
    ['ce-subject', '%FF'],
    ['ce-subject', 'a%00b'],
    ['ce-datacontenttype', 'application/json'],
    ['ce-my_name', 'x'],
    ['ce-specversion', '0.3'],
    ['ce-time', 'yesterday'],
    ['ce-time', '2026-01-15'],
    ['ce-source', 'a%20b'],
    ['ce-id', ''],
    ['ce-type', 'x'.repeat(1_025)],
  ])('the header %s: %s is refused', (name, value) => {
    expect(outcomeOf({ ...HEADERS, [name]: value }, '{}')).toBe('BODY_NOT_UNDERSTOOD')
  })

  test("in binary mode, the body is the data and its content type is the data's type", () => {
    const [event] = read({ ...HEADERS, 'content-type': 'text/xml', 'ce-traceid': '7' }, '<a/>')
    expect(bodyOf(event)).toBe('<a/>')
    expect(event?.attributes).toEqual({ datacontenttype: 'text/xml', traceid: '7', cesource: '/shop', ceid: '1' })
  })

  test.each([
    ['no data', {}, ''],
    ['null is data', { data: null }, 'null'],
    ['falsy values are data', { data: 0 }, '0'],
    ['text is JSON', { data: '{"a":1}' }, '"{\\"a\\":1}"'],
    ['text of a JSON kind', { data: 'x', datacontenttype: 'application/problem+json; charset=utf-8' }, '"x"'],
    ['text of another kind is itself', { data: '<a/>', datacontenttype: 'text/xml' }, '<a/>'],
    ['JSON of another kind stays', { data: { a: 1 }, datacontenttype: 'text/xml' }, '{"a":1}'],
    ['Base64', { data_base64: 'aGk=' }, 'hi'],
    ['null Base64 is absent', { data_base64: null, data: 1 }, '1'],
  ])('structured: %s', (_, more, body) => {
    expect(bodyOf(structured({ ...EVENT, ...more }))).toBe(body)
  })

  test('an attribute that is null is absent; numbers and booleans are attributes', () => {
    const event = structured({ ...EVENT, subject: null, time: null, dataschema: null, count: 7, sampled: true })
    expect(event?.subject).toBeUndefined()
    expect(event?.attributes).toEqual({ count: 7, sampled: true, cesource: '/shop', ceid: '1' })
  })

  test('a number of any length is an attribute with all its digits', () => {
    const digits = '1234567890'.repeat(5)
    const body = JSON.stringify({ ...EVENT, count: 'N' }).replace('"N"', digits)
    expect(read(STRUCTURED, body)[0]?.attributes).toMatchObject({ count: digits })
  })

  test.each([
    ['both kinds of data', { data: 1, data_base64: 'aGk=' }],
    ['invalid Base64', { data_base64: 'a' }],
    ['Base64 that is no text', { data_base64: 7 }],
    ['an attribute that is an object', { extra: {} }],
    ['a name with capitals', { Extra: '1' }],
    ['a name with a dash', { 'my-name': '1' }],
    ['no id', { id: null }],
    ['an id that is a number', { id: 7 }],
    ['no source', { source: '' }],
    ['another version', { specversion: '2.0' }],
    ['a time by chance', { time: 'now' }],
    ['text that is no Unicode', { subject: '\ud800' }],
  ])('structured, refused: %s', (_, more) => {
    expect(outcomeOf(STRUCTURED, JSON.stringify({ ...EVENT, ...more }))).toBe('BODY_NOT_UNDERSTOOD')
  })

  test('a name that is longer than a store allows is replaced by its hash, which differs between events', () => {
    const long = ['a', 'b'].map((id) => structured({ ...EVENT, id: 'x'.repeat(2_000) + id })?.dedupeId)
    expect(new Set(long).size).toBe(2)
    for (const one of long) expect(one).toMatch(/^[0-9a-f]{64}$/)
  })

  test.each([
    [{ authorization: `Bearer ${TOKEN}` }, '', 'accepted'],
    [{ authorization: `bearer ${TOKEN}` }, '', 'accepted'],
    [{}, `?access_token=${TOKEN}`, 'accepted'],
    [{}, '', 'CREDENTIALS_MISSING'],
    [{}, '?access_token=x', 'CREDENTIALS_WRONG'],
    [{ authorization: 'Bearer x' }, `?access_token=${TOKEN}`, 'CREDENTIALS_WRONG'],
    [{ authorization: `Basic ${TOKEN}` }, '', 'CREDENTIALS_MISSING'],
  ])('token %j %s: %s', (headers, query, outcome) => {
    const request = requestOf({
      headers: { ...HEADERS, ...headers },
      body: '{}',
      url: `https://a.example/in/ce${query}`,
    })
    expect(receive(source, request, TOKEN).outcome).toBe(outcome)
  })

  test('requests can be verified in the way of another source, or explicitly not at all', () => {
    const request = requestOf({ headers: HEADERS, body: '{}' })
    const signed = cloudEvents({ verify: hmac({ header: 'x-signature', secret: 's' }) })
    expect(receive(signed, request, 's').outcome).toBe('SIGNATURE_MISSING')
    const mac = createHmac('sha256', 's').update('{}').digest('hex')
    const proven = requestOf({ headers: { ...HEADERS, 'x-signature': mac }, body: '{}' })
    expect(receive(signed, proven, 's')).toMatchObject({ outcome: 'accepted', events: [{ type: 'order.created' }] })
    expect(receive(cloudEvents({ verify: 'none' }), request, '').outcome).toBe('accepted')
  })

  test.each([
    [['eventgrid.azure.net'], 'EventGrid.azure.net', '120', undefined, 'eventgrid.azure.net', '*'],
    [['eventgrid.azure.net'], 'eventgrid.azure.net', '120', 60, 'eventgrid.azure.net', '60'],
    [['eventgrid.azure.net'], 'eventgrid.azure.net', '30', 60, 'eventgrid.azure.net', '30'],
    ['*' as const, 'anybody.example', undefined, undefined, '*', '*'],
  ])('origins %j: %s may send', (origins, origin, asked, rate, allowedOrigin, allowedRate) => {
    const granting = cloudEvents({ token: TOKEN, origins, ...(rate !== undefined && { rate }) })
    const result = greeted(granting, {
      'webhook-request-origin': origin,
      ...(asked && { 'webhook-request-rate': asked }),
    })
    expect(result).toMatchObject({
      kind: 'answer',
      answer: {
        status: 200,
        headers: { allow: 'POST', 'webhook-allowed-origin': allowedOrigin, 'webhook-allowed-rate': allowedRate },
      },
    })
  })

  test.each([
    [undefined, 'eventgrid.azure.net'],
    [['eventgrid.azure.net'], 'evil.example'],
    [['eventgrid.azure.net'], 'eventgrid.azure.net, evil.example'],
    [['eventgrid.azure.net'], undefined],
  ])('origins %j: %s may not', (origins, origin) => {
    const granting = cloudEvents({ token: TOKEN, ...(origins && { origins }) })
    const result = greeted(granting, origin === undefined ? {} : { 'webhook-request-origin': origin })
    expect(result).toMatchObject({ kind: 'refused', refusal: { code: 'HANDSHAKE_REFUSED' } })
  })

  test('invalid options are rejected', () => {
    const bad = [
      {},
      { token: '' },
      { token: undefined },
      { token: 'x', verify: 'none' },
      { verify: undefined },
      { verify: 'maybe' },
      { token: 'x', origins: 'a' },
      { token: 'x', origins: ['a b'] },
      { token: 'x', rate: 0 },
      { token: 'x', tenant: 'my-tenant' },
      { token: 'x', secret: 'y' },
    ]
    for (const one of bad) expect(() => cloudEvents(one as never)).toThrow(/CONFIG_INVALID: cloudEvents: /)
  })
})

function greeted(from: Source, headers: Readonly<Record<string, string>>): unknown {
  return from.handshake?.answer(requestOf({ method: 'OPTIONS', body: '', headers }))
}
