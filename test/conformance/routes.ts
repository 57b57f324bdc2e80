// L18: an event that was routed by an old set of flows and endpoints is rejected, so that no new flow or endpoint misses it.
import assert from 'node:assert/strict'
import { assertSingle, type Suite } from './stage.ts'
import { createUnrouted, createPlacement } from './builders.ts'

export const routes: Suite = (rule) => {
  rule('L18 an append that was routed by an old epoch is rejected whole and stores nothing', async (t) => {
    await t.append('a')
    const { routes: raised } = await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    const answers = await t.appendEvents(t.event('b'), t.event('c', { key: 'c' }))
    assert.deepEqual(answers, [{ kind: 'routes-old' }, { kind: 'routes-old' }])
    assert.equal(await t.getEventRecord('b'), undefined)
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
    t.routes = raised
    assert.deepEqual(await t.appendEvents(t.event('b'), t.event('c', { key: 'c' })), [
      { kind: 'stored' },
      { kind: 'stored' },
    ])
  })

  rule('L18 only a write with raiseRoutes raises the epoch, which all later replies carry', async (t) => {
    const write = { kind: 'endpoint', id: 'e', ifRev: 0, body: new Uint8Array([1]) }
    const before = (await t.store.stats()).routes
    const plain = await t.store.writeDocs({ writes: [write], raiseRoutes: false, audit: undefined })
    assert.equal(plain.routes, before)
    const raising = await t.store.writeDocs({ writes: [{ ...write, id: 'f' }], raiseRoutes: true, audit: undefined })
    assert.equal(raising.kind, 'written')
    assert.ok(raising.routes > before)
    const replies = [
      await t.store.stats(),
      await t.store.append({ routes: raising.routes, events: [] }),
      await t.store.renew({ lease: 1, runs: [] }),
      await t.settleAndClaim(),
      await t.store.readDocs({ kind: 'endpoint', ids: [], after: '', n: 1 }),
    ]
    for (const reply of replies) assert.equal(reply.routes, raising.routes)
  })

  rule('L18 a write that conflicts does not raise the epoch', async (t) => {
    const write = { kind: 'endpoint', id: 'e', ifRev: 7, body: new Uint8Array([1]) }
    const before = (await t.store.stats()).routes
    const refused = await t.store.writeDocs({ writes: [write], raiseRoutes: true, audit: undefined })
    assert.deepEqual([refused.kind, refused.routes], ['conflict', before])
    assert.deepEqual(await t.append('a'), { kind: 'stored' })
  })

  rule('L18 an unrouted event or a replay that was routed by an old epoch is not placed', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const call = { n: 10, lease: 60_000, reasons: ['outbox'], flows: [] } as const
    const leased = assertSingle((await t.store.claimUnrouted(call)).unrouted)
    const raised = await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    const items = [
      { kind: 'unrouted', id: leased.id, token: leased.token, placements: [createPlacement()], unrouted: [] },
      { kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement({ key: 'other' })] },
    ] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['routes-old', 'routes-old'])
    await t.assertNothingReady()
    assert.deepEqual((await t.store.place({ routes: raised.routes, items })).results, ['placed', 'placed'])
    assert.equal((await t.claim()).length, 2)
  })
}
