// Tests Notion's integration webhooks: signed by Notion's own package, with a secret from a handshake that is accepted once.
import { signWebhookPayload, verifyWebhookSignature } from '@notionhq/client'
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { notion } from '../../src/sources/notion.ts'
import { cases } from './cases/notion.ts'
import { NOW, receive, requestOf } from './faults.ts'

const TOKEN = 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl'
const HANDSHAKE = JSON.stringify({ verification_token: TOKEN })
const genuine = cases[0]?.request(TOKEN, NOW).body ?? new Uint8Array()
const text = Buffer.from(genuine).toString()

function eventOf(body: string): SourceEvent {
  const events = notion().events(requestOf({ body }))
  if ('code' in events || events[0] === undefined) throw new Error('There is no event.')
  return events[0]
}

describe('notion', () => {
  test.each([text, `${text}\n`, '{"type":"page.created","id":"1","workspace_name":"Zoë 🦊"}'])(
    'the source accepts what Notion’s package signs, and the package verifies what the source accepts: %#',
    async (body) => {
      const signature = await signWebhookPayload({ body, verificationToken: TOKEN })
      const request = requestOf({ body, headers: { 'x-notion-signature': signature } })
      expect(receive(notion({ secret: TOKEN }), request, TOKEN).outcome).toBe('accepted')
      expect(receive(notion(), request, TOKEN).outcome).toBe('accepted')
      expect(receive(notion({ secret: ['newer', TOKEN] }), request, TOKEN).outcome).toBe('accepted')
      expect(await verifyWebhookSignature({ body, signature, verificationToken: TOKEN })).toBe(true)
    },
  )

  test('an event has its names', () => {
    expect(eventOf(text)).toMatchObject({
      type: 'page.properties_updated',
      dedupeId: '367cba44-b6f3-4c92-81e7-6a2e9659efd4',
      subject: '153104cd-477e-809d-8dc4-ff2d96ae3090',
      tenant: '13950b26-c203-4f3b-b97d-93ec06319565',
      time: Date.UTC(2025, 11, 5, 23, 55, 34, 285),
      attributes: { attempt: '1' },
    })
  })

  test('a further attempt has the same id and the same bytes: a duplicate, no conflict', () => {
    const [first, second] = [eventOf(text), eventOf(text.replace('"attempt_number":1', '"attempt_number":2'))]
    expect(second.dedupeId).toBe(first.dedupeId)
    expect(Buffer.from(second.body).equals(first.body)).toBe(true)
    expect(second.attributes).toEqual({ attempt: '2' })
    const { attempt_number: _, ...others } = JSON.parse(text) as Record<string, unknown>
    expect(JSON.parse(Buffer.from(first.body).toString())).toEqual(others)
  })

  test('without a secret the source waits for the handshake, signed or not', async () => {
    const source = notion()
    expect(source.secrets).toBe('by-handshake')
    const signature = await signWebhookPayload({ body: HANDSHAKE, verificationToken: TOKEN })
    for (const headers of [{}, { 'x-notion-signature': signature }]) {
      const result = source.handshake?.answer(requestOf({ body: HANDSHAKE, headers }))
      expect(result).toEqual({ kind: 'secret', secret: TOKEN, answer: { status: 200 } })
    }
  })

  test.each([
    ['signed by another token', HANDSHAKE, { 'x-notion-signature': `sha256=${'0'.repeat(64)}` }],
    ['an empty token', '{"verification_token":""}', {}],
    ['a token that is no text', '{"verification_token":7}', {}],
    ['a token that is no Unicode', '{"verification_token":"\\ud800"}', {}],
  ])('a handshake is refused: %s', (_, body, headers) => {
    const result = notion().handshake?.answer(requestOf({ body, headers }))
    expect(result).toMatchObject({ kind: 'refused', refusal: { code: 'HANDSHAKE_REFUSED' } })
  })

  test('nobody can replace a configured secret by a handshake', async () => {
    const source = notion({ secret: TOKEN })
    const signature = await signWebhookPayload({ body: HANDSHAKE, verificationToken: TOKEN })
    for (const headers of [{}, { 'x-notion-signature': signature }]) {
      expect(receive(source, requestOf({ body: HANDSHAKE, headers }), TOKEN).outcome).toBe('HANDSHAKE_REFUSED')
    }
  })

  test('an event is not a handshake, whatever else it contains', () => {
    for (const body of [text, '{"verification_token":"x","type":"page.created","id":"1"}', '[]', 'x', '']) {
      expect(notion().handshake?.answer(requestOf({ body }))).toBeUndefined()
    }
    const large = JSON.stringify({ verification_token: 'x'.repeat(2_000) })
    expect(notion().handshake?.answer(requestOf({ body: large }))).toBeUndefined()
    expect(notion().handshake?.answer(requestOf({ body: HANDSHAKE, method: 'GET' }))).toBeUndefined()
  })

  test('an undefined secret is not the same as an omitted one: the source does not start', () => {
    expect(() => notion({ secret: undefined })).toThrow(/CONFIG_INVALID: notion: secret/)
    expect(() => notion({ token: TOKEN } as never)).toThrow(/token is not an option/)
  })

  test('a body without type or id is rejected', () => {
    for (const body of ['{}', '{"type":"page.created"}', '{"id":"1"}', '[]', 'null']) {
      expect(notion().events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    }
  })
})
