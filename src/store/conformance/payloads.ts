// A payload is bytes: what went in comes out, the same to the last bit, wherever it is read.
import assert from 'node:assert/strict'
import { only, type Suite } from './stage.ts'
import { bytes, dead } from './vocabulary.ts'

const payloads: Readonly<Record<string, Uint8Array>> = {
  nothing: new Uint8Array(),
  'an empty array': bytes('[]'),
  'an empty object': bytes('{}'),
  null: bytes('null'),
  'a number above 2^53': bytes('{"n":9007199254740993}'),
  NUL: new Uint8Array([0, 97, 0, 0, 98, 0]),
  emoji: bytes('{"a":"👩‍👩‍👧‍👦"}'),
  'a byte order mark': new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  'bytes that are not UTF-8': new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  'every byte': Uint8Array.from({ length: 256 }, (_, n) => n),
  'a megabyte': Uint8Array.from({ length: 1_048_576 }, (_, n) => (n * 31 + (n >> 8)) % 256),
}

function same(actual: Uint8Array | undefined, expected: Uint8Array): void {
  assert.ok(actual instanceof Uint8Array, 'there are bytes')
  assert.ok(Buffer.from(actual).equals(expected), `the same ${expected.length} bytes`)
}

export const payloadsAreBytes: Suite = (rule) => {
  for (const [name, body] of Object.entries(payloads)) {
    rule(`payload: ${name} is the same through claim, bodies, get and a dead letter`, async (t) => {
      await t.append('a', { body })
      const run = await t.next()
      same(run.events[0]?.body, body)
      same(only((await t.store.bodies({ events: [t.id('a')] })).bodies), body)
      const record = await t.record('a')
      same(record?.body, body)
      assert.equal(record?.size, body.length)
      await t.end(run, dead)
      await t.steerDead(run.run, 'retry')
      same((await t.next()).events[0]?.body, body)
    })
  }

  rule('payload: the bytes are those at the call, though the caller writes into its buffer afterwards', async (t) => {
    const body = bytes('before')
    await t.append('a', { body })
    body.fill(0)
    same((await t.next()).events[0]?.body, bytes('before'))
  })

  rule('payload: a handler that writes into the body it was given changes it for nobody else', async (t) => {
    await t.append('a', { keys: ['x', 'y'], body: 'before' })
    const [x, y] = await t.claim()
    x?.events[0]?.body?.fill(0)
    same(y?.events[0]?.body, bytes('before'))
    same(only((await t.store.bodies({ events: [t.id('a')] })).bodies), bytes('before'))
  })

  rule('payload: a view into a larger buffer is stored as the view', async (t) => {
    await t.append('a', { body: bytes('xxpaidxx').subarray(2, 6) })
    same((await t.next()).events[0]?.body, bytes('paid'))
  })

  rule('payload: names, attributes and the request come back as they were', async (t) => {
    const words = {
      source: 'shop/Ω',
      type: 'order.paid 👍',
      tenant: 'a\0b',
      subject: '"quoted" \\ %',
      attributes: '{"x":"é"}',
      request: 'POST /in/shop\r\n\r\n\0',
    }
    await t.append('a', words)
    const [event] = (await t.next()).events
    const record = await t.record('a')
    for (const found of [event, record]) {
      assert.deepEqual(
        [found?.source, found?.type, found?.tenant, found?.subject, found?.attributes],
        [words.source, words.type, words.tenant, words.subject, words.attributes],
      )
    }
    same(record?.request, bytes(words.request))
  })

  rule('payload: bodies beyond the budget are left out of the claim and fetched by id', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(1_000) })
    const run = await t.next({ budget: 1_500 })
    assert.deepEqual(t.names(run), ['a', 'b', 'c'])
    const sent = run.events.filter((event) => event.body !== undefined)
    assert.ok(sent.length < 3, 'not all were sent')
    const missing = run.events.filter((event) => event.body === undefined).map((event) => event.id)
    for (const body of (await t.store.bodies({ events: missing })).bodies) same(body, bytes('x'.repeat(1_000)))
  })

  rule('payload: the budget counts over all leases of the answer', async (t) => {
    for (const key of ['a', 'b', 'c', 'd']) await t.append(key, { key, body: 'x'.repeat(1_000) })
    const runs = await t.claim({ budget: 2_000 })
    const sent = runs.flatMap((run) => run.events).filter((event) => event.body !== undefined)
    assert.deepEqual([runs.length, sent.length], [4, 2])
  })

  rule('payload: bodies answers in the order asked, undefined for what is not there', async (t) => {
    await t.appendEach(['a', 'b'])
    const events = [t.id('b'), 'nobody', t.id('a'), t.id('b')]
    const { bodies } = await t.store.bodies({ events })
    assert.deepEqual(
      bodies.map((body) => body && Buffer.from(body).toString()),
      ['b', undefined, 'a', 'b'],
    )
  })
}
