// Bodies of deliveries: in order, the same bytes at every try, and data as it came in.
import { expect, test } from 'vitest'
import { batchBody, inOrder, type DeliveredEvent } from '../../src/deliver/batch.ts'

const AT = Date.UTC(2025, 11, 7, 10, 30)

function event(id: string, body: string | Uint8Array, over: Partial<DeliveredEvent> = {}): DeliveredEvent {
  return { id, source: 'meta', type: 'NEW_VERSION', time: AT, subject: '', body: Buffer.from(body), ...over }
}

test('as Standard Webhooks advises', () => {
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

test('events and nothing around them', () => {
  expect(JSON.parse(batchBody({ kind: 'events' }, [event('a', '{"n":1}')]).toString())).toEqual({
    events: [{ id: 'a', eventType: 'NEW_VERSION', createdAt: '2025-12-07T10:30:00.000Z', data: { n: 1 } }],
  })
})

test('data goes out as it came in', () => {
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

const ids = (list: readonly DeliveredEvent[]): readonly string[] => list.map(({ id }) => id)

test('by time, then by id, whatever order they come in', () => {
  const events = [event('c', '1'), event('a', '2', { time: AT + 1 }), event('b', '3')]
  expect(ids(inOrder(events))).toEqual(['b', 'c', 'a'])
  expect(ids(inOrder(events.toReversed()))).toEqual(['b', 'c', 'a'])
})

test('the same events are the same bytes', () => {
  const events = [event('a', '{"n":1}'), event('b', '2')]
  const form = { kind: 'standard', type: 'versions' } as const
  expect(batchBody(form, inOrder(events.toReversed())).equals(batchBody(form, inOrder(events)))).toBe(true)
})
