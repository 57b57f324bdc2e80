// Tests Garmin: a client id and addresses are the only proof; a push has items of many people, and a changed item is new data.
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { garmin } from '../../src/sources/garmin.ts'
import { receive, requestOf } from './faults.ts'

const CLIENT = '3f6e4d2c-1b0a-4987-8654-3210fedcba98'
const source = garmin({ clientId: CLIENT })

function eventsOf(body: unknown): readonly SourceEvent[] {
  const events = source.events(requestOf({ body: typeof body === 'string' ? body : JSON.stringify(body) }))
  if ('code' in events) throw new Error(events.what)
  return events
}

const sleep = (userId: string, more: object = {}): object => ({
  userId,
  summaryId: 'x153a9f3-6',
  startTimeInSeconds: 1_519_679_700,
  ...more,
})

describe('garmin', () => {
  test.each([
    ['203.0.113.7', 'accepted'],
    ['::ffff:203.0.113.7', 'accepted'],
    ['203.0.114.7', 'ADDRESS_NOT_ALLOWED'],
    ['198.51.100.4', 'accepted'],
    ['198.51.100.5', 'ADDRESS_NOT_ALLOWED'],
    ['2001:db8::1', 'accepted'],
    ['2001:db8::1%eth0', 'accepted'],
    ['2001:db9::1', 'ADDRESS_NOT_ALLOWED'],
    ['', 'ADDRESS_NOT_ALLOWED'],
    ['unix', 'ADDRESS_NOT_ALLOWED'],
  ])('from %s: %s', (address, outcome) => {
    const listed = garmin({ clientId: CLIENT, addresses: ['203.0.113.0/24', '198.51.100.4', '2001:db8::/32'] })
    const request = requestOf({ body: '{"sleeps":[]}', headers: { 'garmin-client-id': CLIENT }, address })
    expect(receive(listed, request, CLIENT).outcome).toBe(outcome)
  })

  test('several types and people give one event each, with its own bytes', () => {
    const events = eventsOf({
      sleeps: [sleep('ada'), sleep('bo')],
      activityDetails: [{ userId: 'ada', summaryId: '7', summary: { startTimeInSeconds: 1 }, samples: [] }],
      userPermissionsChange: [{ userId: 'bo', summaryId: '8', permissions: [], changeTimeInSeconds: 2 }],
      epochs: [],
    })
    expect(events.map(({ type, subject, time }) => [type, subject, time])).toEqual([
      ['sleeps', 'ada', 1_519_679_700_000],
      ['sleeps', 'bo', 1_519_679_700_000],
      ['activityDetails', 'ada', 1_000],
      ['userPermissionsChange', 'bo', 2_000],
    ])
    expect(events.map(({ body }) => JSON.parse(Buffer.from(body).toString()) as unknown)[1]).toEqual(sleep('bo'))
    expect(source.answer).toEqual({ status: 200 })
  })

  test('an item is recognised in any other body; a fuller one is new data', () => {
    const [first] = eventsOf({ sleeps: [sleep('ada')] })
    const again = eventsOf({ dailies: [sleep('ada')], sleeps: [sleep('bo'), sleep('ada')] })
    expect(again.map(({ dedupeId }) => dedupeId === first?.dedupeId)).toEqual([false, false, true])
    expect(first?.dedupeId).toMatch(/^sleeps\/ada\/x153a9f3-6\/[\w-]{43}$/)
    const [fuller] = eventsOf({ sleeps: [sleep('ada', { validation: 'ENHANCED_FINAL' })] })
    expect(fuller?.dedupeId).not.toBe(first?.dedupeId)
  })

  test('two deregistrations of one person are two events, because a repeated one looks the same', () => {
    const [event] = eventsOf({ deregistrations: [{ userId: 'ada' }] })
    expect(event).toMatchObject({ type: 'deregistrations', subject: 'ada', dedupeId: undefined })
  })

  test('digits beyond the precision of a number are kept', () => {
    const [event] = eventsOf('{"activities":[{"userId":"ada","activityId":12345678901234567891}]}')
    expect(Buffer.from(event?.body ?? '').toString()).toBe('{"userId":"ada","activityId":12345678901234567891}')
  })

  test('other content beside data is ignored; a body without data, or without items, is rejected', () => {
    expect(eventsOf({ version: 2, sleeps: [sleep('ada')] })).toHaveLength(1)
    expect(eventsOf({ userPermissionsChange: { userId: 'ada', permissions: [] } })).toHaveLength(1)
    const many = `{"sleeps":[${'{},'.repeat(100_000)}{}]}`
    for (const body of [many, '{}', '[]', '{"version":2}', '{"sleeps":[1]}', '{"":[{}]}', 'null', '']) {
      expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    }
  })

  test('a body may have ten megabytes by default, and a hundred at most', () => {
    expect(source.maxBody).toBe(10_485_760)
    expect(garmin({ clientId: CLIENT, maxBody: 104_857_600 }).maxBody).toBe(104_857_600)
    const items = Array.from({ length: 20_000 }, (_, n) => sleep(`user-${n}`, { filling: 'x'.repeat(400) }))
    expect(eventsOf({ epochs: items })).toHaveLength(20_000)
  })

  test('invalid options are rejected', () => {
    const bad = [
      { clientId: '' },
      { maxBody: 104_857_601 },
      { maxBody: 0 },
      { addresses: [] },
      { addresses: ['203.0.113.0/33'] },
      { addresses: ['garmin.com'] },
      { addresses: undefined, ip: 'x' },
    ]
    for (const one of bad) {
      expect(() => garmin({ clientId: CLIENT, ...one } as never)).toThrow(/CONFIG_INVALID: garmin: /)
    }
  })
})
