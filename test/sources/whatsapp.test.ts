// Tests WhatsApp as Meta sends it: signed by an independent package, and split into one complete event per update.
import { sign } from '@octokit/webhooks-methods'
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { whatsapp } from '../../src/sources/whatsapp.ts'
import { receive, requestOf } from './faults.ts'

const SECRET = 'app-secret'
const source = whatsapp({ secret: SECRET, verifyToken: ['apricot', 'older'] })
const METADATA = { display_phone_number: '15550783881', phone_number_id: '106540352242922' }

interface Value {
  readonly contacts?: readonly object[]
  readonly messages?: readonly object[]
  readonly statuses?: readonly object[]
  readonly errors?: readonly object[]
}

function bodyOf(value: object, field = 'messages', entry: object = {}): string {
  const changes = [{ field, value: { messaging_product: 'whatsapp', metadata: METADATA, ...value } }]
  return JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1022', ...entry, changes }] })
}

function eventsOf(value: Value, field?: string, entry?: object): readonly SourceEvent[] {
  return received(bodyOf(value, field, entry))
}

function received(body: string): readonly SourceEvent[] {
  const events = source.events(requestOf({ body }))
  if ('code' in events) throw new Error(events.what)
  return events
}

const dataOf = ({ body }: SourceEvent): unknown => JSON.parse(Buffer.from(body).toString())
const text = (n: number, more: object = {}): object => ({
  from: '16505551234',
  id: `wamid.${n}`,
  timestamp: '1749416383',
  type: 'text',
  text: { body: `no. ${n} 🦊` },
  ...more,
})

const paid = (transaction: string): object => ({
  id: 'wamid.1',
  status: 'failed',
  type: 'payment',
  timestamp: '1749416384',
  payment: { reference_id: 'r1', transaction: { id: transaction, status: 'failed' } },
})

describe('whatsapp', () => {
  test('the source accepts what octokit signs, in the form that Meta shares with GitHub', async () => {
    const body = bodyOf({ messages: [text(1)] })
    const headers = { 'x-hub-signature-256': await sign(SECRET, body) }
    expect(receive(source, requestOf({ body, headers }), SECRET).outcome).toBe('accepted')
  })

  test.each([
    ['subscribe', 'apricot', '1158201444', 200],
    ['subscribe', 'older', '<script>', 200],
    ['subscribe', 'apricots', '1158201444', 'HANDSHAKE_REFUSED'],
    ['subscribe', '', '1158201444', 'HANDSHAKE_REFUSED'],
    ['unsubscribe', 'apricot', '1158201444', 'HANDSHAKE_REFUSED'],
    ['subscribe', 'apricot', '', 'HANDSHAKE_REFUSED'],
    ['subscribe', 'apricot', 'x'.repeat(1_001), 'HANDSHAKE_REFUSED'],
  ])('handshake %s, token %s, challenge %s: %s', (mode, token, challenge, expected) => {
    const query = new URLSearchParams({ 'hub.mode': mode, 'hub.verify_token': token, 'hub.challenge': challenge })
    const result = source.handshake?.answer(
      requestOf({ method: 'GET', body: '', url: `https://a.example/?${query.toString()}` }),
    )
    if (result?.kind !== 'answer') expect(result).toMatchObject({ kind: 'refused', refusal: { code: expected } })
    else {
      expect(result.answer).toMatchObject({ status: expected, body: challenge })
      // The challenge is a stranger's text, so no browser may treat it as a page.
      expect(result.answer.headers).toEqual({
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
      })
    }
  })

  test('a message has its person, its number and its own text', () => {
    const contacts = [
      { profile: { name: 'Bo' }, wa_id: '49170' },
      { profile: { name: 'Zoë' }, wa_id: '16505551234', user_id: 'US.1349' },
    ]
    const [event] = eventsOf({ contacts, messages: [text(1)] })
    expect(event).toMatchObject({
      type: 'message.text',
      dedupeId: 'wamid.1',
      subject: 'US.1349',
      tenant: '106540352242922',
      time: 1_749_416_383_000,
      attributes: { account: '1022' },
    })
    expect(event && dataOf(event)).toEqual({ metadata: METADATA, contact: contacts[1], message: text(1) })
  })

  test.each([
    ['user id in the message', { from_user_id: 'US.7', from: undefined }, [], 'US.7'],
    ['user id of the only contact', { from: undefined }, [{ user_id: 'US.8' }], 'US.8'],
    ['number of the contact', {}, [{ wa_id: '16505551234' }], '16505551234'],
    ['number of the message', {}, [], '16505551234'],
    ['contacts of others', {}, [{ wa_id: '1', user_id: 'US.9' }], '16505551234'],
    ['nobody', { from: undefined }, [], undefined],
  ])('subject: %s', (_, more, contacts, subject) => {
    expect(eventsOf({ contacts, messages: [text(1, more)] })[0]?.subject).toBe(subject)
  })

  test('each status of a message is an event, in a group one for each member', () => {
    const status = { id: 'wamid.1', status: 'delivered', timestamp: '1749416384', recipient_id: '16505551234' }
    const group = { ...status, recipient_type: 'group', recipient_id: 'G1' }
    const statuses = [
      status,
      { ...status, status: 'read' },
      { ...group, recipient_participant_id: '111' },
      { ...group, participant_recipient_id: '222' },
    ]
    expect(eventsOf({ statuses }).map(({ type, dedupeId, subject }) => [type, dedupeId, subject])).toEqual([
      ['status.delivered', 'wamid.1/delivered', '16505551234'],
      ['status.read', 'wamid.1/read', '16505551234'],
      ['status.delivered', 'wamid.1/delivered/111', '111'],
      ['status.delivered', 'wamid.1/delivered/222', '222'],
    ])
  })

  test('each payment of one request is an event, and is recognised again', () => {
    const [one, other, again] = eventsOf({ statuses: [paid('T1'), paid('T2'), paid('T1')] })
    expect(one?.dedupeId).toMatch(/^wamid\.1\/failed\/[\w-]{43}$/)
    expect(other?.dedupeId).not.toBe(one?.dedupeId)
    expect(again?.dedupeId).toBe(one?.dedupeId)
  })

  test('errors, and changes of other fields, are recognised only if the entry has a time', () => {
    const errors = [{ code: 130429, title: 'Rate limit hit' }]
    expect(eventsOf({ errors })).toMatchObject([{ type: 'error', dedupeId: undefined }])
    const [timed] = eventsOf({ errors }, 'messages', { time: 1_739_321_024 })
    expect(timed?.dedupeId).toMatch(/^1022\/messages\/1739321024\//)
    expect(timed?.time).toBe(1_739_321_024_000)
    const [template] = received(bodyOf({ event: 'APPROVED' }, 'message_template_status_update'))
    expect(template).toMatchObject({ type: 'message_template_status_update', dedupeId: undefined })
    expect(template && dataOf(template)).toMatchObject({ event: 'APPROVED' })
  })

  test('a thousand updates of one POST are a thousand events, and the same ones in any other POST', () => {
    const messages = Array.from({ length: 1_000 }, (_, n) => text(n))
    const contacts = messages.map((_, n) => ({ wa_id: `4917${n}`, user_id: `DE.${n}` }))
    const people = eventsOf({ contacts, messages: messages.map((_, n) => text(n, { from: `4917${n}` })) })
    expect(people.map(({ subject }) => subject)).toEqual(contacts.map(({ user_id }) => user_id))
    const all = eventsOf({ messages })
    expect(new Set(all.map(({ dedupeId }) => dedupeId)).size).toBe(1_000)
    expect(eventsOf({ messages: messages.slice(500, 501) })).toEqual([all[500]])
  })

  test('digits beyond the precision of a number are kept', () => {
    const [event] = received(bodyOf({ messages: [{ ...text(1), order: 'N' }] }).replace('"N"', '12345678901234567891'))
    expect(Buffer.from(event?.body ?? '').toString()).toContain('12345678901234567891')
  })

  test('a body that is not from WhatsApp is rejected', () => {
    for (const body of ['{}', '[]', '{"object":"page","entry":[]}', '"x"']) {
      expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    }
  })

  test('invalid options are rejected', () => {
    const bad = [{ secret: '' }, { verifyToken: ' ' }, { verifyToken: undefined }, { token: 'x' }]
    for (const one of bad) {
      expect(() => whatsapp({ secret: 's', verifyToken: 't', ...one })).toThrow(/CONFIG_INVALID: whatsapp: /)
    }
  })
})
