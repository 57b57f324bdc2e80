// Tests Strava: the handshake, the subscription that is always checked, the optional signature, and ids with all their digits.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { strava, type StravaOptions } from '../../src/sources/strava.ts'
import { NOW, receive, requestOf } from './faults.ts'

const OPTIONS: StravaOptions = { verifyToken: 'STRAVA', subscriptionId: 120475 }
const source = strava(OPTIONS)

const EVENT = {
  aspect_type: 'update',
  event_time: 1_549_560_669,
  object_id: 1_360_128_428,
  object_type: 'activity',
  owner_id: 134_815,
  subscription_id: 120_475,
  updates: {},
}

function eventOf(body: string): SourceEvent {
  const events = source.events(requestOf({ body }))
  if ('code' in events || events[0] === undefined) throw new Error('There is no event.')
  return events[0]
}

const idOf = (updates: object): string | undefined => eventOf(JSON.stringify({ ...EVENT, updates })).dedupeId

describe('strava', () => {
  test('the handshake gets a JSON response', () => {
    const url = 'https://a.example/in/strava?hub.verify_token=STRAVA&hub.challenge=15f7d1a91c&hub.mode=subscribe'
    const result = source.handshake?.answer(requestOf({ method: 'GET', url, body: '' }))
    expect(result).toMatchObject({
      kind: 'answer',
      answer: {
        status: 200,
        headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
        body: '{"hub.challenge":"15f7d1a91c"}',
      },
    })
    const wrong = requestOf({ method: 'GET', url: url.replace('STRAVA', 'strava'), body: '' })
    expect(source.handshake?.answer(wrong)).toMatchObject({ kind: 'refused' })
  })

  test.each([
    [120_475, 'accepted'],
    ['120475', 'accepted'],
    [120_476, 'CREDENTIALS_WRONG'],
    [undefined, 'CREDENTIALS_MISSING'],
    [{}, 'CREDENTIALS_MISSING'],
  ])('subscription_id %j: %s', (id, outcome) => {
    const request = requestOf({ body: JSON.stringify({ ...EVENT, subscription_id: id }) })
    expect(receive(source, request, '').outcome).toBe(outcome)
  })

  test('a valid signature with another subscription is rejected', () => {
    const signed = strava({ ...OPTIONS, secret: 's' })
    for (const [id, outcome] of [
      [120_475, 'accepted'],
      [1, 'CREDENTIALS_WRONG'],
    ] as const) {
      const body = JSON.stringify({ ...EVENT, subscription_id: id })
      const mac = createHmac('sha256', 's')
        .update(`${NOW / 1_000}.${body}`)
        .digest('hex')
      const headers = { 'x-strava-signature': `t=${NOW / 1_000},v1=${'0'.repeat(64)},v1=${mac}` }
      expect(receive(signed, requestOf({ body, headers }), 's').outcome).toBe(outcome)
    }
  })

  test('the names of an event keep digits beyond the precision of a number', () => {
    const body = JSON.stringify(EVENT)
      .replace('1360128428', '9007199254740993001')
      .replace('134815', '9007199254740993')
    expect(eventOf(body)).toMatchObject({
      type: 'activity.update',
      dedupeId: 'activity/9007199254740993001/update/1549560669',
      subject: '9007199254740993',
      time: 1_549_560_669_000,
    })
    expect(Buffer.from(eventOf(body).body).toString()).toBe(body)
  })

  test('two changes within one second are two events, and each is recognised again', () => {
    expect(idOf({ title: 'A' })).toMatch(/^activity\/1360128428\/update\/1549560669\/[\w-]{43}$/)
    expect(idOf({ title: 'A' })).toBe(idOf({ title: 'A' }))
    expect(idOf({ title: 'A' })).not.toBe(idOf({ type: 'Run' }))
    expect(idOf({})).toBe('activity/1360128428/update/1549560669')
  })

  test.each([
    ['athlete', 'update', { authorized: 'false' }, 'athlete.deauthorized'],
    ['athlete', 'update', { authorized: false }, 'athlete.deauthorized'],
    ['athlete', 'delete', {}, 'athlete.deauthorized'],
    ['athlete', 'update', {}, 'athlete.update'],
    ['athlete', 'update', { authorized: 'true' }, 'athlete.update'],
    ['activity', 'delete', {}, 'activity.delete'],
    ['activity', 'create', { authorized: 'false' }, 'activity.create'],
  ])('%s, %s, %j: %s', (object_type, aspect_type, updates, type) => {
    expect(eventOf(JSON.stringify({ ...EVENT, object_type, aspect_type, updates })).type).toBe(type)
  })

  test('a body without an object is rejected', () => {
    for (const name of ['object_type', 'object_id', 'aspect_type']) {
      const body = JSON.stringify({ ...EVENT, [name]: undefined })
      expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    }
  })

  test('invalid options are rejected; an undefined secret is not the same as an omitted one', () => {
    const bad = [
      { verifyToken: '' },
      { subscriptionId: '' },
      { subscriptionId: 1.5 },
      { secret: undefined },
      { key: 1 },
    ]
    for (const one of bad) expect(() => strava({ ...OPTIONS, ...one })).toThrow(/CONFIG_INVALID: strava: /)
  })
})
