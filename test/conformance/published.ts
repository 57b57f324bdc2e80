// L2b: events that a handler publishes are stored in the commit of its settlement, once over all attempts, or not at all.
import assert from 'node:assert/strict'
import type { EventToStore, Settlement } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { deadAndBlocking, encodeText, done, retry } from './builders.ts'

/** The n-th event of a run: the same identity in each attempt, with another id. */
function createPublishedEvent(t: ConformanceStage, name: string, dedupe: string): EventToStore {
  return t.event(name, { flow: 'next', key: 'n', source: 'sluice', dedupe, body: dedupe })
}

export const publishedEvents: Suite = (rule) => {
  rule('L2b a published event is stored and placed with the settlement', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.assertNothingReady({ flow: 'next' })
    await t.settleOk(run, done, {
      publish: [createPublishedEvent(t, 'p0', `${run.runId}/0`), createPublishedEvent(t, 'p1', `${run.runId}/1`)],
    })
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['p0', 'p1'])
    assert.equal((await t.getEventRecord('p0'))?.source, 'sluice')
  })

  rule('L2b a settlement that is lost publishes nothing', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    t.expireLeases()
    assert.equal(await t.settle(run, done, { publish: [createPublishedEvent(t, 'p0', `${run.runId}/0`)] }), 'lost')
    await t.assertNothingReady({ flow: 'next' })
    assert.equal(await t.getEventRecord('p0'), undefined)
    const back = await t.claimOne()
    await t.settleOk(back, done, { publish: [createPublishedEvent(t, 'snoozed', `${run.runId}/0`)] })
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['snoozed'])
  })

  rule('L2b a repeated attempt publishes nothing twice', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(0), { publish: [createPublishedEvent(t, 'p0', `${run.runId}/0`)] })
    const second = await t.claimOne()
    const publish = [
      createPublishedEvent(t, 'p0-again', `${run.runId}/0`),
      createPublishedEvent(t, 'p1', `${run.runId}/1`),
    ]
    await t.settleOk(second, done, { publish })
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['p0', 'p1'])
    await t.assertNothingReady()
  })

  rule('L2b events that a failing run published stay published', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, deadAndBlocking, { publish: [createPublishedEvent(t, 'p0', `${run.runId}/0`)] })
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['p0'])
  })

  rule('L2b an event published into the lane of its own run waits for that run', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, done, { publish: [t.event('b', { dedupe: `${run.runId}/0` })] })
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L2b with old routes, published events become unrouted with routes-old', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    await t.settleOk(run, done, { publish: [createPublishedEvent(t, 'p0', `${run.runId}/0`)] })
    await t.assertNothingReady({ flow: 'next' })
    const call = { n: 10, lease: 1_000, reasons: ['routes-old'], flows: [] } as const
    const leased = assertSingle((await t.store.claimUnrouted(call)).unrouted)
    assert.deepEqual([leased.flow, leased.reason, t.names([leased.event.id])], ['', 'routes-old', ['p0']])
  })

  rule('L2b L10 unstored lists each published event that was not stored, and why', async (t) => {
    for (const key of ['a', 'b', 'lost']) await t.append(key, { key })
    await t.append('first', { flow: 'other', source: 'sluice', dedupe: 'known', body: 'known' })
    const runs = new Map((await t.claim()).map((run) => [run.key, run]))
    const end = (key: string, publish: readonly EventToStore[]): Settlement => {
      const { lane, token } = runs.get(key) ?? { lane: '', token: 0 }
      const wrong = key === 'lost' ? 1 : 0
      const how = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined } as const
      return { ...how, lane, token: token + wrong, publish }
    }
    const fresh = createPublishedEvent(t, 'fresh', 'fresh')
    const settle = [
      end('a', [
        fresh,
        createPublishedEvent(t, 'duplicate', 'known'),
        { ...createPublishedEvent(t, 'bad', 'bad'), id: '' },
      ]),
      end('lost', [createPublishedEvent(t, 'duplicate too', 'known')]),
      end('b', [
        { ...createPublishedEvent(t, 'conflict', 'known'), body: encodeText('other') },
        fresh,
        createPublishedEvent(t, 'last', 'last'),
      ]),
    ]
    const reply = await t.settleAndClaim({ settle, request: 7 })
    assert.deepEqual(reply.settled, ['ok', 'lost', 'ok'])
    const kinds = reply.unstored.map((one) => [one.settle, one.publish, one.result.kind])
    assert.deepEqual(kinds, [
      [0, 1, 'duplicate'],
      [0, 2, 'refused'],
      [2, 0, 'conflict'],
      [2, 1, 'repeated'],
    ])
    assert.deepEqual(reply.unstored[0]?.result, { kind: 'duplicate', of: t.id('first') })
    assert.deepEqual((await t.settleAndClaim({ settle, request: 7 })).unstored, reply.unstored)
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['fresh', 'last'])
  })

  rule('L2b events published by old routes are stored, and not listed as unstored', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    const how = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined } as const
    const publish = [createPublishedEvent(t, 'p0', 'p0'), { ...createPublishedEvent(t, 'p0 again', 'p0') }]
    const { unstored: keptOut } = await t.settleAndClaim({
      settle: [{ ...how, lane: run.lane, token: run.token, publish }],
    })
    assert.deepEqual(keptOut, [{ settle: 0, publish: 1, result: { kind: 'duplicate', of: t.id('p0') } }])
  })
}
