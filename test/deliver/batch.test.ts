// Tests the bodies of deliveries: the order, the same bytes on every attempt, and unchanged data.
import { expect, test } from 'vitest'
import { eventsBody, flatContent, standardBody } from '../../src/deliver/forms/events.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'

const AT = Date.UTC(2025, 11, 7, 10, 30)

function event(
  id: string,
  body: string | Uint8Array,
  over: { readonly subject?: string; readonly time?: number } = {},
) {
  const named = { id, source: 'meta', type: 'NEW_VERSION', time: AT, tenant: '', subject: '', attributes: '' }
  return new FlowEvent({ ...named, ...over, body: Buffer.from(body) })
}

test('the standard form is that of Standard Webhooks', () => {
  const events = [event('a', '{"n":1}', { subject: 'neoforge' }), event('b', '[2]', { time: AT + 5 })]
  expect(JSON.parse(standardBody('versions', events).toString())).toEqual({
    type: 'versions',
    timestamp: '2025-12-07T10:30:00.005Z',
    data: {
      events: [
        {
          id: 'a',
          source: 'meta',
          type: 'NEW_VERSION',
          time: '2025-12-07T10:30:00.000Z',
          subject: 'neoforge',
          data: { n: 1 },
        },
        { id: 'b', source: 'meta', type: 'NEW_VERSION', time: '2025-12-07T10:30:00.005Z', data: [2] },
      ],
    },
  })
})

test('the events form has no envelope', () => {
  expect(JSON.parse(eventsBody([event('a', '{"n":1}')]).toString())).toEqual({
    events: [{ id: 'a', eventType: 'NEW_VERSION', createdAt: '2025-12-07T10:30:00.000Z', data: { n: 1 } }],
  })
})

test('data is copied as received', () => {
  const text = '{ "big": 12345678901234567890, "e": 1.0, "s": "\\u00e9é" }'
  expect(eventsBody([event('a', text)]).toString()).toContain(`"data":${text}}`)
})

test.each([
  ['no data', '', undefined, undefined],
  ['null', 'null', null, undefined],
  ['text that is no JSON', 'a,b', undefined, 'YSxi'],
  ['bytes', Buffer.of(0, 255), undefined, 'AP8='],
  [
    'what would end the event early',
    '{}},{"id":"forged"',
    undefined,
    Buffer.from('{}},{"id":"forged"').toString('base64'),
  ],
])('%s', (_, body, data, base64) => {
  const parsed = JSON.parse(eventsBody([event('a', body)]).toString()) as { events: object[] }
  expect(parsed.events).toHaveLength(1)
  expect(parsed.events[0]).toMatchObject({ id: 'a', ...(base64 === undefined ? {} : { data_base64: base64 }) })
  expect((parsed.events[0] as { data?: unknown }).data).toEqual(data)
})

test.each([
  ['standard', (events: readonly FlowEvent[]) => standardBody('versions', events)],
  ['events', eventsBody],
] as const)(
  'D2 the body lists events in the order in which they are given, and has the time of the latest: %s',
  (form, build) => {
    const events = [event('c', '1'), event('a', '2', { time: AT + 1 }), event('b', '3')]
    const body = JSON.parse(build(events).toString()) as {
      timestamp?: string
      events?: { id: string }[]
      data?: { events: { id: string }[] }
    }
    expect((body.events ?? body.data?.events)?.map(({ id }) => id)).toEqual(['c', 'a', 'b'])
    if (form === 'standard') expect(body.timestamp).toBe(new Date(AT + 1).toISOString())
  },
)

test('the events form carries chosen fields at the top level of each event', () => {
  const fields = {
    component: 'data.component',
    componentVersion: 'data["version"]',
    from: 'source',
    missing: 'data.nope',
  }
  const body = eventsBody([event('a', '{"component":"NEOFORGE","version":"21.0.1"}'), event('b', '7')], fields)
  expect(JSON.parse(body.toString())).toEqual({
    events: [
      {
        id: 'a',
        eventType: 'NEW_VERSION',
        component: 'NEOFORGE',
        componentVersion: '21.0.1',
        from: 'meta',
        createdAt: '2025-12-07T10:30:00.000Z',
        data: { component: 'NEOFORGE', version: '21.0.1' },
      },
      { id: 'b', eventType: 'NEW_VERSION', from: 'meta', createdAt: '2025-12-07T10:30:00.000Z', data: 7 },
    ],
  })
})

test.each([
  ['{ "big": 12345678901234567890 }', 'application/json', '{ "big": 12345678901234567890 }'],
  ['', 'application/json', 'null'],
  ['a,b', 'application/octet-stream', 'a,b'],
])('the flat form is the data as it was published: %s', (data, type, body) => {
  const content = flatContent([event('a', data)])
  expect(content.headers).toEqual({ 'content-type': type })
  expect(content.body.toString()).toBe(body)
})
