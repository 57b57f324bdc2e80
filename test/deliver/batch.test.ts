// Tests the bodies of deliveries: the order, the same bytes on every attempt, and unchanged data.
import { expect, test } from 'vitest'
import { batchBody, type DeliveredEvent } from '../../src/deliver/batch.ts'

const AT = Date.UTC(2025, 11, 7, 10, 30)

function event(id: string, body: string | Uint8Array, over: Partial<DeliveredEvent> = {}): DeliveredEvent {
  return { id, source: 'meta', type: 'NEW_VERSION', time: AT, subject: '', body: Buffer.from(body), ...over }
}

test('the standard form is that of Standard Webhooks', () => {
  const events = [event('a', '{"n":1}', { subject: 'neoforge' }), event('b', '[2]', { time: AT + 5 })]
  expect(JSON.parse(batchBody({ kind: 'standard', type: 'versions' }, events).toString())).toEqual({
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
  expect(JSON.parse(batchBody({ kind: 'events' }, [event('a', '{"n":1}')]).toString())).toEqual({
    events: [{ id: 'a', eventType: 'NEW_VERSION', createdAt: '2025-12-07T10:30:00.000Z', data: { n: 1 } }],
  })
})

test('data is copied as received', () => {
  const text = '{ "big": 12345678901234567890, "e": 1.0, "s": "\\u00e9é" }'
  expect(batchBody({ kind: 'events' }, [event('a', text)]).toString()).toContain(`"data":${text}}`)
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
  const parsed = JSON.parse(batchBody({ kind: 'events' }, [event('a', body)]).toString()) as { events: object[] }
  expect(parsed.events).toHaveLength(1)
  expect(parsed.events[0]).toMatchObject({ id: 'a', ...(base64 === undefined ? {} : { data_base64: base64 }) })
  expect((parsed.events[0] as { data?: unknown }).data).toEqual(data)
})

test.each([{ kind: 'standard', type: 'versions' } as const, { kind: 'events' } as const])(
  'D2 the body lists events in the order in which they are given, and has the time of the latest: %o',
  (form) => {
    const events = [event('c', '1'), event('a', '2', { time: AT + 1 }), event('b', '3')]
    const body = JSON.parse(batchBody(form, events).toString()) as {
      timestamp?: string
      events?: { id: string }[]
      data?: { events: { id: string }[] }
    }
    expect((body.events ?? body.data?.events)?.map(({ id }) => id)).toEqual(['c', 'a', 'b'])
    if (form.kind === 'standard') expect(body.timestamp).toBe(new Date(AT + 1).toISOString())
  },
)
