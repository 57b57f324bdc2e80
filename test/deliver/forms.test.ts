// Tests the forms for other receivers: CloudEvents against its SDK and our own source, and the cards of Slack, Discord and
// PagerDuty against the limits that their documentation names.
import { HTTP, type CloudEvent } from 'cloudevents'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { discordBody, pagerDutyBody, shorten, slackBody } from '../../src/deliver/forms/chat.ts'
import { cloudEventsContent } from '../../src/deliver/forms/cloud-events.ts'
import { formFault } from '../../src/deliver/forms/form.ts'
import { FlowEvent } from '../../src/model/flow-event.ts'
import { cloudEvents } from '../../src/sources/index.ts'
import type { SourceEvent } from '../../src/receive/source.ts'
import { requestOf } from '../sources/faults.ts'

const AT = Date.UTC(2026, 10, 19, 5)

interface Given {
  readonly id?: string
  readonly type?: string
  readonly subject?: string
  readonly time?: number
  readonly attributes?: string
  readonly body?: Uint8Array | string
}

function event({ body = '{"n":1}', ...given }: Given = {}): FlowEvent {
  const named = { id: 'e1', source: '/shop', type: 'order.paid', time: AT, tenant: 't', subject: '', attributes: '' }
  return new FlowEvent({ ...named, ...given, body: Buffer.from(body) })
}

const received = ({ headers, body }: ReturnType<typeof cloudEventsContent>): readonly CloudEvent<unknown>[] => {
  const made = HTTP.toEvent({ headers, body: body.toString() })
  return [made].flat() as CloudEvent<unknown>[]
}

const structured = (one: FlowEvent): object =>
  JSON.parse(cloudEventsContent('structured', [one]).body.toString()) as object

describe('CloudEvents', () => {
  test.each(['structured', 'binary', 'batch'] as const)('the SDK accepts the mode %s', (mode) => {
    const content = cloudEventsContent(mode, [
      event({ subject: 'o-1', attributes: '{"region":"eu","n":7,"Bad-Name":"x","object":{}}' }),
    ])
    const [made] = received(content)
    expect(made?.validate()).toBe(true)
    expect(made?.toJSON()).toMatchObject({
      specversion: '1.0',
      id: 'e1',
      source: '/shop',
      type: 'order.paid',
      subject: 'o-1',
      time: '2026-11-19T05:00:00.000Z',
      region: 'eu',
      datacontenttype: 'application/json',
      data: { n: 1 },
    })
    expect(Object.keys(made?.toJSON() ?? {})).not.toContain('Bad-Name')
    expect(Object.keys(made?.toJSON() ?? {})).not.toContain('object')
  })

  test('a batch holds all its events in order, and one event a POST rejects a second one', () => {
    const events = ['a', 'b', 'c'].map((id) => event({ id }))
    const content = cloudEventsContent('batch', events)
    expect(content.headers['content-type']).toBe('application/cloudevents-batch+json')
    expect(received(content).map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect(() => cloudEventsContent('structured', events)).toThrow('takes one event')
  })

  test('data that is not JSON is carried as bytes, and no data as none', () => {
    const text = event({ body: 'a,b', attributes: '{"datacontenttype":"text/csv"}' })
    expect(structured(text)).toMatchObject({ datacontenttype: 'text/csv', data_base64: 'YSxi' })
    expect(structured(event({ body: '7', attributes: '{"datacontenttype":"text/plain"}' }))).toMatchObject({
      data_base64: 'Nw==',
    })
    expect(structured(event({ body: 'a,b', attributes: '{"datacontenttype":"application/json"}' }))).toMatchObject({
      datacontenttype: 'application/octet-stream',
    })
    expect(Object.keys(structured(event({ body: '' })))).not.toContain('data')
    expect(structured(event({ body: '{ "n": 12345678901234567890 }' }))).toBeDefined()
    expect(cloudEventsContent('structured', [event({ body: '{"n":12345678901234567890}' })]).body.toString()).toContain(
      '"data":{"n":12345678901234567890}',
    )
  })

  test('every mode returns the same event when our own source reads it', () => {
    const source = cloudEvents({ verify: 'none' })
    const word = fc
      .string({ minLength: 1, maxLength: 30, unit: 'grapheme' })
      .filter((text) => !/\p{Cc}|\p{Cs}/u.test(text))
    const content = fc.oneof(
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.string(),
      fc.uint8Array(),
    )
    const mode = fc.constantFrom('structured' as const, 'binary' as const, 'batch' as const)
    fc.assert(
      fc.property(mode, word, word, content, (how, subject, region, body) => {
        const sent = event({ subject, attributes: JSON.stringify({ region }), body })
        const { headers, body: bytes } = cloudEventsContent(how, [sent])
        const parsed = source.events(requestOf({ headers, body: bytes }))
        const [made] = parsed as readonly SourceEvent[]
        expect(made).toMatchObject({ type: sent.type, subject, time: AT, attributes: { region } })
        const read = Buffer.from(made?.body ?? '')
        // A structured event cannot say that JSON was written in another way, so its value counts.
        if (sent.data === undefined) expect(read.equals(Buffer.from(sent.body))).toBe(true)
        else expect(JSON.parse(read.toString())).toEqual(sent.data)
      }),
      { numRuns: 1_000 },
    )
  })

  test('the binary mode encodes what a header cannot carry, and the percent sign', () => {
    const { headers } = cloudEventsContent('binary', [event({ subject: 'a "b" 50%20 é😀' })])
    expect(headers['ce-subject']).toBe('a%20%22b%22%2050%2520%20%C3%A9%F0%9F%98%80')
  })

  test('attributes fill a bounded part of the headers', () => {
    const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`a${n}`, 'é'.repeat(100)]))
    const { headers } = cloudEventsContent('binary', [event({ attributes: JSON.stringify(attributes) })])
    expect(JSON.stringify(headers).length).toBeLessThan(5_000)
    expect(headers).toMatchObject({ 'ce-id': 'e1' })
  })
})

const mrkdwn = z.strictObject({
  type: z.literal('mrkdwn'),
  text: z.string().min(1).max(3_000),
  verbatim: z.literal(true),
})
const SLACK = z.strictObject({
  text: z.string().min(1).max(40_000),
  blocks: z
    .array(z.strictObject({ type: z.literal('section'), text: mrkdwn }))
    .min(1)
    .max(50),
})
const DISCORD = z
  .strictObject({
    content: z.string().min(1).max(2_000),
    embeds: z
      .array(
        z.strictObject({
          title: z.string().min(1).max(256),
          description: z.string().min(1).max(4_096).optional(),
          timestamp: z.iso.datetime().optional(),
        }),
      )
      .min(1)
      .max(10),
    allowed_mentions: z.strictObject({ parse: z.tuple([]) }),
  })
  .refine(
    ({ embeds }) => embeds.reduce((sum, one) => sum + one.title.length + (one.description?.length ?? 0), 0) <= 6_000,
  )
const PAGERDUTY = z
  .strictObject({
    routing_key: z.string().length(32),
    event_action: z.literal('trigger'),
    dedup_key: z.string().min(1).max(255),
    payload: z.strictObject({
      summary: z.string().min(1).max(1_024),
      source: z.string().min(1),
      severity: z.enum(['critical', 'error', 'warning', 'info']),
      timestamp: z.iso.datetime().optional(),
      custom_details: z.strictObject({
        events: z.array(z.looseObject({ id: z.string() })),
        omitted: z.int().optional(),
      }),
    }),
  })
  .refine((body) => Buffer.byteLength(JSON.stringify(body)) <= 512 * 1_024)

const KEY = 'R0123456789abcdefghijklmnopqrstu'
const toPagerDuty = (events: readonly FlowEvent[]): Buffer => pagerDutyBody(events, { key: KEY, id: 'msg_1' })

describe.each([
  ['slack', slackBody, SLACK],
  ['discord', discordBody, DISCORD],
  ['pagerduty', toPagerDuty, PAGERDUTY],
] as const)('the form %s', (_, build, schema: z.ZodType) => {
  const parse = (events: readonly FlowEvent[]): string => {
    const text = build(events).toString()
    expect(text).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/i)
    schema.parse(JSON.parse(text))
    return text
  }

  test('stays within the limits of the receiver for any events', () => {
    const piece = fc.constantFrom('a', '<', '&', '😀', 'é', '\ud800', '\0', '\n', '*', '`', ' ')
    const long = fc
      .tuple(piece, fc.constantFrom(0, 1, 30, 119, 120, 150, 449, 450, 1_024, 3_000, 4_096, 20_000))
      .map(([one, times]) => one.repeat(times))
    const data = fc.oneof(
      long,
      fc.record({ text: long, title: long, severity: fc.constantFrom('info', 'none', 'critical') }),
      fc.record({ message: long }),
      fc.record({ other: long }),
      fc.array(long, { maxLength: 3 }),
    )
    const one = fc.record({
      type: long.filter((text) => text.length > 0 && text.length <= 1_024),
      subject: long.filter((text) => text.length <= 1_024),
      body: fc.oneof(
        data.map((value) => JSON.stringify(value)),
        fc.uint8Array({ maxLength: 10 }),
      ),
    })
    const some = fc.oneof(
      fc.array(one, { minLength: 1, maxLength: 4 }),
      fc
        .tuple(one, fc.constantFrom(9, 10, 11, 20, 21, 1_000))
        .map(([same, times]) => Array.from({ length: times }, () => same)),
    )
    fc.assert(
      fc.property(some, (given) => {
        parse(given.map((each, n) => event({ ...each, id: `e${n}` })))
      }),
      { numRuns: 150 },
    )
  })

  test('marks what it shortens, and how many events it leaves out', () => {
    expect(parse([event({ body: JSON.stringify({ text: 'short' }) })])).not.toContain('…')
    expect(parse([event({ body: JSON.stringify({ text: 'x'.repeat(5_000) }) })])).toContain('xxx…')
    const many = Array.from({ length: 1_000 }, () => event({ body: JSON.stringify({ text: 'y'.repeat(1_000) }) }))
    expect(parse(many)).toContain('1000 × order.paid')
  })

  test('names the text of the event, its title and its type', () => {
    expect(parse([event({ subject: 'o-1', body: '{"message":"It failed."}' })])).toMatch(
      /order\.paid · o-1.*It failed\./s,
    )
    expect(parse([event({ body: '{"title":"Ten errors","text":"In ten minutes"}' })])).toMatch(
      /Ten errors.*In ten minutes/s,
    )
    expect(parse([event({ type: 'a' }), event({ type: 'b' })])).toContain('2 events')
  })
})

test('Slack gets no mention, link or broken entity from the data', () => {
  const body = { title: '<!channel>', text: `${'&'.repeat(2_999)}<@U1>` }
  const { text, blocks } = JSON.parse(slackBody([event({ body: JSON.stringify(body) })]).toString()) as z.infer<
    typeof SLACK
  >
  for (const one of [text, ...blocks.map((block) => block.text.text)]) {
    expect(one).not.toMatch(/[<>]/)
    expect(one.replaceAll(/&(?:amp|lt|gt);/g, '')).not.toContain('&')
  }
  expect(blocks[0]?.text.text).toContain('&lt;!channel&gt;')
})

const alert = (severity: string, size = 0): FlowEvent =>
  event({ body: JSON.stringify({ severity, pad: 'p'.repeat(size) }) })
const parsePagerDuty = (events: readonly FlowEvent[]) => PAGERDUTY.parse(JSON.parse(toPagerDuty(events).toString()))

test('PagerDuty gets the worst severity, the id of the batch, and as many events as fit', () => {
  expect(parsePagerDuty([alert('info'), alert('critical'), alert('warning')])).toMatchObject({
    routing_key: KEY,
    dedup_key: 'msg_1',
    payload: { severity: 'critical', custom_details: { events: [{}, {}, {}] } },
  })
  expect(parsePagerDuty([alert('other')]).payload.severity).toBe('error')
  const { events, omitted = 0 } = parsePagerDuty(Array.from({ length: 100 }, () => alert('info', 40_000))).payload
    .custom_details
  expect(events.length).toBeGreaterThan(5)
  expect(events.length + omitted).toBe(100)
})

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['a😀b', 3, 'a…'],
  ['a😀', 3, 'a😀'],
  ['\ud800', 3, '\ufffd'],
  ['a\0b\n', 9, 'a b\n'],
])('%j in %i characters is %j', (text, most, short) => {
  expect(shorten(text, most)).toBe(short)
})

test.each([
  ['xml', "must be 'standard', 'events', 'flat', 'cloudevents', 'slack', 'discord' or 'pagerduty'; got \"xml\""],
  [7, 'got number'],
  [{ kind: 'flat' }, "only for 'events' and 'cloudevents'"],
  [{ kind: 'events' }, 'must have kind and fields only'],
  [{ kind: 'events', fields: { id: 'data.id' } }, 'other than id, eventType'],
  [{ kind: 'events', fields: { a: 'nope' } }, 'must have a path for the field "a"'],
  [
    { kind: 'events', fields: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`f${n}`, 'type'])) },
    'at most 20',
  ],
  [{ kind: 'cloudevents', mode: 'avro' }, "must have a mode that is 'structured', 'binary' or 'batch'"],
  [{ kind: 'cloudevents', mode: 'batch', more: 1 }, 'must have kind and mode only'],
])('the form %j is rejected', (form, fault) => {
  expect(formFault(form)).toContain(fault)
})
