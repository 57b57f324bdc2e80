// A payload is bytes: every read returns exactly the bytes that were stored.
import assert from 'node:assert/strict'
import { assertSingle, type Suite } from './stage.ts'
import { encodeText, dead } from './builders.ts'

const PAYLOADS: Readonly<Record<string, Uint8Array>> = {
  nothing: new Uint8Array(),
  'an empty array': encodeText('[]'),
  'an empty object': encodeText('{}'),
  null: encodeText('null'),
  'a number above 2^53': encodeText('{"n":9007199254740993}'),
  NUL: new Uint8Array([0, 97, 0, 0, 98, 0]),
  emoji: encodeText('{"a":"👩‍👩‍👧‍👦"}'),
  'a byte order mark': new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  'bytes that are not UTF-8': new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  'every byte': Uint8Array.from({ length: 256 }, (_, n) => n),
  'a megabyte': Uint8Array.from({ length: 1_048_576 }, (_, n) => (n * 31 + (n >> 8)) % 256),
}

function assertSameBytes(actual: Uint8Array | undefined, expected: Uint8Array): void {
  assert.ok(actual instanceof Uint8Array, 'there are bytes')
  assert.ok(Buffer.from(actual).equals(expected), `the same ${expected.length} bytes`)
}

export const payloads: Suite = (rule) => {
  for (const [name, body] of Object.entries(PAYLOADS)) {
    rule(`payload: ${name} is the same through claim, bodies, get and a dead letter`, async (t) => {
      await t.append('a', { body })
      const run = await t.claimOne()
      assertSameBytes(run.events[0]?.body, body)
      assertSameBytes(assertSingle((await t.store.readBodies({ events: [t.id('a')] })).bodies), body)
      const record = await t.getEventRecord('a')
      assertSameBytes(record?.body, body)
      assert.equal(record?.size, body.length)
      await t.settleOk(run, dead)
      await t.steerDeadLetter(run.runId, 'retry')
      assertSameBytes((await t.claimOne()).events[0]?.body, body)
    })
  }

  rule('payload: the bytes are those at the call, though the caller writes into its buffer afterwards', async (t) => {
    const body = encodeText('before')
    await t.append('a', { body })
    body.fill(0)
    assertSameBytes((await t.claimOne()).events[0]?.body, encodeText('before'))
  })

  rule('payload: a handler that writes into its body changes no other copy', async (t) => {
    await t.append('a', { keys: ['x', 'y'], body: 'before' })
    const [x, y] = await t.claim()
    x?.events[0]?.body?.fill(0)
    assertSameBytes(y?.events[0]?.body, encodeText('before'))
    assertSameBytes(assertSingle((await t.store.readBodies({ events: [t.id('a')] })).bodies), encodeText('before'))
  })

  rule('payload: a view into a larger buffer is stored as the view', async (t) => {
    await t.append('a', { body: encodeText('xxpaidxx').subarray(2, 6) })
    assertSameBytes((await t.claimOne()).events[0]?.body, encodeText('paid'))
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
    const [event] = (await t.claimOne()).events
    const record = await t.getEventRecord('a')
    for (const found of [event, record]) {
      assert.deepEqual(
        [found?.source, found?.type, found?.tenant, found?.subject, found?.attributes],
        [words.source, words.type, words.tenant, words.subject, words.attributes],
      )
    }
    assertSameBytes(record?.request, encodeText(words.request))
  })

  rule('payload: bodies beyond the budget are left out of the claim and fetched by id', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(1_000) })
    const run = await t.claimOne({ budget: 1_500 })
    assert.deepEqual(t.names(run), ['a', 'b', 'c'])
    const sent = run.events.filter((event) => event.body !== undefined)
    assert.ok(sent.length < 3, 'not all were sent')
    const missing = run.events.filter((event) => event.body === undefined).map((event) => event.id)
    for (const body of (await t.store.readBodies({ events: missing })).bodies)
      assertSameBytes(body, encodeText('x'.repeat(1_000)))
  })

  rule('payload: the budget counts over all leases of the reply', async (t) => {
    for (const key of ['a', 'b', 'c', 'd']) await t.append(key, { key, body: 'x'.repeat(1_000) })
    const runs = await t.claim({ budget: 2_000 })
    const sent = runs.flatMap((run) => run.events).filter((event) => event.body !== undefined)
    assert.deepEqual([runs.length, sent.length], [4, 2])
  })

  rule('payload: readBodies returns the order of the request, with undefined for missing events', async (t) => {
    await t.appendEach(['a', 'b'])
    const events = [t.id('b'), 'nobody', t.id('a'), t.id('b')]
    const { bodies } = await t.store.readBodies({ events })
    assert.deepEqual(
      bodies.map((body) => body && Buffer.from(body).toString()),
      ['b', undefined, 'a', 'b'],
    )
  })
}
