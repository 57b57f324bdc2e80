// L10: one identity is one event, in a batch, in a window and long after the work is done. Other bytes are a conflict and not
// stored.
import assert from 'node:assert/strict'
import { sorted, type Suite } from './stage.ts'
import { encodeText, done, SECOND } from './builders.ts'

export const duplicates: Suite = (rule) => {
  rule('L10 the same event again is our own lost reply: repeated, and it changes nothing', async (t) => {
    assert.deepEqual(await t.append('a', { quiet: 100 }), { kind: 'stored' })
    t.clock.advance(50)
    assert.deepEqual(await t.append('a', { quiet: 100 }), { kind: 'repeated' })
    const run = await t.claimOneAfter(50)
    assert.deepEqual(t.names(run), ['a'])
    await t.settleOk(run)
    assert.deepEqual(await t.append('a', { quiet: 100 }), { kind: 'repeated' })
    t.clock.advance(1_000)
    await t.assertNothingReady()
    assert.deepEqual((await t.getEventRecord('a'))?.receipts ?? [], [])
  })

  rule('L10 the same identity with the same bytes is a duplicate of the first event', async (t) => {
    await t.append('a', { dedupe: 'x', body: 'paid' })
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: 'paid' }), { kind: 'duplicate', of: t.id('a') })
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
    assert.equal(await t.getEventRecord('b'), undefined)
  })

  rule('L10 the same identity with other bytes is a conflict and is not stored', async (t) => {
    await t.append('a', { dedupe: 'x', body: 'paid' })
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: 'unpaid' }), { kind: 'conflict', of: t.id('a') })
    const run = await t.claimOne()
    assert.deepEqual(
      run.events.map((event) => event.body && Buffer.from(event.body).toString()),
      ['paid'],
    )
    assert.equal(await t.getEventRecord('b'), undefined)
  })

  rule('L10 duplicates inside one batch are found, and the rest of the batch is stored', async (t) => {
    const batch = [
      t.event('a', { dedupe: 'x', body: '1' }),
      t.event('b', { dedupe: 'y' }),
      t.event('c', { dedupe: 'x', body: '1' }),
      t.event('d', { dedupe: 'x', body: '2' }),
      t.event('e', { dedupe: 'z' }),
    ]
    assert.deepEqual(await t.appendEvents(...batch), [
      { kind: 'stored' },
      { kind: 'stored' },
      { kind: 'duplicate', of: t.id('a') },
      { kind: 'conflict', of: t.id('a') },
      { kind: 'stored' },
    ])
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'e'])
  })

  rule('L10 the same event twice in one batch is stored once', async (t) => {
    const event = t.event('a')
    assert.deepEqual(await t.appendEvents(event, event), [{ kind: 'stored' }, { kind: 'repeated' }])
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L10 a duplicate moves no window and counts for no cap', async (t) => {
    const words = { dedupe: 'x', body: '-', quiet: 100, maxEvents: 2 }
    await t.append('a', words)
    t.clock.advance(60)
    assert.equal((await t.append('b', words)).kind, 'duplicate')
    assert.deepEqual(t.names(await t.claimOneAfter(40)), ['a'])
  })

  rule('L10 a duplicate cancels no run', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-', quiet: 10, max: 60_000 })
    const run = await t.claimOneAfter(10)
    assert.equal(
      (await t.append('b', { dedupe: 'x', body: '-', quiet: 10, max: 60_000, cancel: true })).kind,
      'duplicate',
    )
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L10 tenants and sources do not suppress each other', async (t) => {
    const words = { dedupe: 'x', body: '-' }
    await t.append('a', { ...words, tenant: 'acme' })
    assert.deepEqual(await t.append('b', { ...words, tenant: 'globex' }), { kind: 'stored' })
    assert.deepEqual(await t.append('c', { ...words, tenant: 'acme', source: 'bank' }), { kind: 'stored' })
    assert.deepEqual(await t.append('d', { ...words, tenant: 'globex' }), { kind: 'duplicate', of: t.id('b') })
  })

  rule('L10 duplicates are found after the work is done, dead or dropped', async (t) => {
    for (const outcome of [
      done,
      { kind: 'dead', reason: '', block: false },
      { kind: 'dropped', reason: '' },
    ] as const) {
      const name = outcome.kind
      await t.append(name, { dedupe: name, body: '-' })
      await t.settleOk(await t.claimOne(), outcome)
      t.clock.advance(86_400_000)
      await t.maintain()
      assert.deepEqual(await t.append(`${name} again`, { dedupe: name, body: '-' }), {
        kind: 'duplicate',
        of: t.id(name),
      })
    }
    await t.assertNothingReady()
  })

  rule('L10 an identity is kept for a fixed time from the first arrival, and then it is new', async (t) => {
    const words = { dedupe: 'x', body: '-', dedupeFor: 10 * SECOND }
    await t.append('a', words)
    await t.settleOk(await t.claimOne())
    t.clock.advance(6 * SECOND)
    assert.deepEqual(await t.append('b', words), { kind: 'duplicate', of: t.id('a') })
    t.clock.advance(4 * SECOND - 1)
    assert.deepEqual(await t.append('c', words), { kind: 'duplicate', of: t.id('a') })
    t.clock.advance(1)
    assert.deepEqual(await t.append('d', words), { kind: 'stored' })
    assert.deepEqual(t.names(await t.claimOne()), ['d'])
    assert.deepEqual(await t.append('e', words), { kind: 'duplicate', of: t.id('d') })
  })

  rule('L10 maintenance forgets no identity before its time', async (t) => {
    const words = { dedupe: 'x', body: '-', dedupeFor: 10 * SECOND }
    await t.append('a', words)
    await t.settleOk(await t.claimOne())
    t.clock.advance(10 * SECOND - 1)
    await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
    assert.deepEqual(await t.append('b', words), { kind: 'duplicate', of: t.id('a') })
  })

  rule('L10 each duplicate and conflict leaves a receipt at the first event', async (t) => {
    const start = t.clock.now()
    await t.append('a', { dedupe: 'x', body: '1' })
    t.clock.advance(5)
    await t.append('b', { dedupe: 'x', body: '1' })
    t.clock.advance(5)
    await t.append('c', { dedupe: 'x', body: '2' })
    const receipts = (await t.getEventRecord('a'))?.receipts ?? []
    assert.deepEqual(sorted(receipts.map(({ at, kind, event }) => [at - start, kind, t.names([event])[0]])), [
      [10, 'conflict', 'c'],
      [5, 'duplicate', 'b'],
    ])
    assert.equal(new Set(receipts.map((receipt) => receipt.bodyHash)).size, 2)
  })

  rule('L10 duplicates are counted', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-' })
    for (const name of ['b', 'c', 'd']) await t.append(name, { dedupe: 'x', body: '-' })
    assert.equal((await t.getEventRecord('a'))?.duplicates, 3)
  })

  rule('L10 an event id that is taken is not given to another event', async (t) => {
    await t.append('a', { dedupe: 'x', body: 'first' })
    const thief = t.event('thief', { id: t.id('a'), dedupe: 'y', body: 'second', key: 'other' })
    const [answer] = await t.appendEvents(thief)
    assert.ok(answer)
    assert.notEqual(answer.kind, 'stored')
    const { bodies } = await t.store.readBodies({ events: [thief.id] })
    assert.deepEqual(
      bodies.map((body) => body && Buffer.from(body)),
      [Buffer.from(encodeText('first'))],
    )
    assert.deepEqual(
      (await t.claim()).map((run) => run.key),
      ['k'],
    )
  })
}
