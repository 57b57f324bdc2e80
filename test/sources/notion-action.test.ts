// Tests Notion's "Send webhook" action: a custom header proves it, and its body has one of two shapes.
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { notionAction } from '../../src/sources/notion-action.ts'
import { receive, requestOf } from './faults.ts'

const SECRET = 'correct horse'
const source = notionAction({ header: 'X-Webhook-Secret', secret: [SECRET, 'older horse'] })
const PAGE = { object: 'page', id: '153104cd', properties: { Assignee: { people: [{ id: 'c7c11cca' }] } } }

function eventOf(body: unknown): SourceEvent {
  const events = source.events(requestOf({ body: JSON.stringify(body) }))
  if ('code' in events || events[0] === undefined) throw new Error('There is no event.')
  return events[0]
}

const dataOf = ({ body }: SourceEvent): unknown => JSON.parse(Buffer.from(body).toString())

describe('notionAction', () => {
  test.each([
    [SECRET, 'accepted'],
    ['older horse', 'accepted'],
    ['Correct horse', 'CREDENTIALS_WRONG'],
    ['', 'CREDENTIALS_WRONG'],
  ])('header %j: %s', (secret, outcome) => {
    const request = requestOf({ body: JSON.stringify({ data: PAGE }), headers: { 'x-webhook-secret': secret } })
    expect(receive(source, request, SECRET).outcome).toBe(outcome)
  })

  test('the envelope names the event', () => {
    const event = eventOf({ source: { event_id: 'e1', attempt: 1, type: 'automation' }, data: PAGE })
    expect(event).toMatchObject({
      type: 'page.updated',
      dedupeId: 'e1',
      subject: '153104cd',
      attributes: { attempt: '1' },
    })
    expect(dataOf(event)).toEqual({ source: { event_id: 'e1', type: 'automation' }, data: PAGE })
  })

  test('a page without an envelope has no id: a repeated request looks like the next press of the button', () => {
    const event = eventOf(PAGE)
    expect(event).toMatchObject({ type: 'page.updated', dedupeId: undefined, subject: '153104cd' })
    expect(dataOf(event)).toEqual(PAGE)
  })

  test('a further attempt has the same id and the same bytes: a duplicate, no conflict', () => {
    const [first, second] = [1, 2].map((attempt) => eventOf({ source: { event_id: 'e1', attempt }, data: PAGE }))
    expect(first?.dedupeId).toBe(second?.dedupeId)
    expect(first?.body).toEqual(second?.body)
  })

  test('two actions of one event are two events', () => {
    const ids = ['a1', 'a2', 'a1'].map((action_id) => eventOf({ source: { event_id: 'e1', action_id }, data: PAGE }))
    expect(ids.map(({ dedupeId }) => dedupeId)).toEqual(['e1/a1', 'e1/a2', 'e1/a1'])
  })

  test('a body without a page is rejected', () => {
    for (const body of ['{}', '[]', '{"data":[]}', '{"data":{"object":"page"}}', '1']) {
      expect(source.events(requestOf({ body }))).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    }
  })

  test('invalid options are rejected', () => {
    for (const one of [{ secret: '' }, { header: '' }, { header: 'a b' }, { header: undefined }, { name: 'x' }]) {
      const options = { header: 'x-secret', secret: SECRET, ...one } as never
      expect(() => notionAction(options)).toThrow(/CONFIG_INVALID: notionAction: /)
    }
  })
})
