// Tests options that name events whose shape only the user knows, from bodies of every kind.
import { describe, expect, test } from 'vitest'
import type { SourceEvent } from '../../src/receive/source.ts'
import { createNamedEventParser, parseTime, toName, type NamingOptions } from '../../src/sources/event-names.ts'
import { NOW, requestOf, type Sending } from './faults.ts'

function named(options: NamingOptions, sending: Sending): readonly SourceEvent[] | { readonly code: string } {
  return createNamedEventParser('hmac', options)(requestOf(sending))
}

const BODY = '{"type":"a.b","list":[{"id":12345678901234567890}],"n":7,"none":null,"empty":"","at":1768478400}'

test('a path follows objects and lists, a header has no case, a function gets both', () => {
  const options: NamingOptions = {
    id: 'list.0.id',
    subject: 'header:X-Subject',
    tenant: ({ headers, data }) => `${headers['x-subject']}/${JSON.stringify(data).length > 0}`,
    time: 'at',
  }
  expect(named(options, { body: BODY, headers: { 'x-subject': 's' } })).toEqual([
    {
      type: 'a.b',
      dedupeId: '12345678901234567890',
      subject: 's',
      tenant: 's/true',
      time: NOW,
      body: Buffer.from(BODY),
    },
  ])
})

test('absent, empty and invalid names are omitted', () => {
  for (const path of [
    'x',
    'n.x',
    'none',
    'empty',
    'list',
    'list.9.id',
    'constructor.name',
    '__proto__.x',
    'list.length',
  ]) {
    expect(named({ id: path, subject: path }, { body: BODY })).toEqual([
      { type: 'a.b', dedupeId: undefined, body: Buffer.from(BODY) },
    ])
  }
})

test('without a type option an event is "received"; a configured type must be present', () => {
  expect(named({}, { body: '{"type":7}' })).toMatchObject([{ type: '7' }])
  expect(named({}, { body: '{"type":{}}' })).toMatchObject([{ type: 'received' }])
  expect(named({}, { body: '[]' })).toMatchObject([{ type: 'received' }])
  expect(named({ type: 'kind' }, { body: '{"type":"a"}' })).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
})

function throwing(): never {
  throw new Error('no such thing')
}

test('a function that throws rejects the request', () => {
  const refused = named({ type: throwing }, { body: '{}' })
  expect(refused).toMatchObject({
    code: 'BODY_NOT_UNDERSTOOD',
    what: expect.stringContaining('no such thing') as string,
  })
})

describe('bodies', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  test('a form becomes JSON for the handler', () => {
    const body = 'type=order&id=7&tag=a&tag=b&__proto__=x'
    expect(named({ id: 'id' }, { body, headers: form })).toEqual([
      { type: 'order', dedupeId: '7', body: Buffer.from('{"type":"order","id":"7","tag":["a","b"]}') },
    ])
  })

  test('JSON is JSON, whatever its content type', () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/cloudevents+json']) {
      expect(named({ id: 'n' }, { body: BODY, headers: { 'content-type': type } })).toMatchObject([{ dedupeId: '7' }])
    }
  })

  test('other bytes are accepted unread, unless their content type is JSON', () => {
    const body = '<order id="7"/>'
    const xml = { body, headers: { 'content-type': 'application/xml', 'x-id': '7' } }
    expect(named({ id: 'header:x-id' }, xml)).toEqual([{ type: 'received', dedupeId: '7', body: Buffer.from(body) }])
    expect(named({}, { body })).toMatchObject({ code: 'BODY_NOT_UNDERSTOOD' })
    expect(named({}, { body: '' })).toMatchObject([{ type: 'received' }])
  })
})

test('a name that is longer than a store allows is replaced by its hash', () => {
  const [one, other] = ['a', 'b'].map((letter) => toName('x'.repeat(2_000) + letter))
  expect(one).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(one).not.toBe(other)
  expect(toName('\ud800')).toBeUndefined()
})

test('options that name nothing are rejected', () => {
  for (const by of ['', 'header:', '.', 'a..b', 'a.', 7, null, {}]) {
    expect(() => createNamedEventParser('hmac', { id: by as never })).toThrow(/CONFIG_INVALID: hmac: id/)
  }
})

test('times are seconds, milliseconds, or text with a zone', () => {
  const times = ['1768478400', '1768478400.5', '1768478400000', '2026-01-15T12:00:00Z', '2026-01-15T13:00:00+01:00']
  expect(times.map(parseTime)).toEqual([NOW, NOW + 500, NOW, NOW, NOW])
  expect(['', 'x', '2026-01-15', '9'.repeat(400), '-1', undefined].map(parseTime)).toEqual(Array(6).fill(undefined))
})
