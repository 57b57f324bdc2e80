// L21: only times of the store's clock are compared, and that clock may step. A step loses nothing and runs nothing twice.
import assert from 'node:assert/strict'
import { NEVER, type Millis } from '../../src/clock.ts'
import { createLimit, DAY, done, LEASE, createReserveRequest, retry, SECOND } from './builders.ts'
import { assertSingle, type Suite } from './stage.ts'

export const time: Suite = (rule) => {
  rule('L21 every reply carries the time of the store', async (t) => {
    t.clock.advance(12_345)
    const { store } = t
    const replies = [
      await store.append({ routes: t.routes, events: [] }),
      await store.claimUnrouted({ n: 1, lease: 1, reasons: [], flows: [] }),
      await store.place({ routes: t.routes, items: [] }),
      await t.settleAndClaim(),
      await store.renew({ lease: 1, runs: [] }),
      await store.leasePermits({ process: 'p', lease: 1, requests: [] }),
      await store.steer({ what: 'dead', ids: [], act: 'drop' }),
      await store.purge({ what: { kind: 'lanes', ids: [] }, n: 1 }),
      await store.reserve({ requests: [] }),
      await store.regulate({ name: 'api', act: { kind: 'resume' } }),
      await store.updatePressure({ flows: [] }),
      await store.readDocs({ kind: 'x', ids: [], after: '', n: 1 }),
      await store.writeDocs({ writes: [], raiseRoutes: false, audit: undefined }),
      await store.find({ kind: 'events', filter: {}, cursor: '', n: 1 }),
      await store.get({ kind: 'events', id: 'x' }),
      await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 1 }),
      await store.stats(),
      await store.readBodies({ events: [] }),
      await store.readFeed({ after: 0, n: 1 }),
    ]
    assert.deepEqual(
      replies.map((reply) => reply.now),
      replies.map(() => t.clock.now()),
    )
  })

  rule('L21 a step back delays deadlines by the step', async (t) => {
    await t.append('a', { quiet: SECOND })
    t.clock.set(t.clock.now() - 10 * SECOND)
    assert.deepEqual(t.names(await t.claimOneAfter(11 * SECOND)), ['a'])
  })

  rule('L21 a step forward brings deadlines forward by the step', async (t) => {
    await t.append('a', { quiet: 10 * SECOND })
    t.clock.set(t.clock.now() + 9 * SECOND)
    assert.deepEqual(t.names(await t.claimOneAfter(SECOND)), ['a'])
  })

  rule('L21 a step back ends no lease and no retry wait', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    t.clock.set(t.clock.now() - 60 * SECOND)
    await t.assertNothingReady({ process: 'p2' })
    assert.equal(await t.renew(run), 'ok')
    await t.settleOk(run, retry(SECOND))
    t.clock.set(t.clock.now() - 60 * SECOND)
    assert.equal((await t.claimOneAfter(61 * SECOND)).runId, run.runId)
  })

  rule('L21 a step forward may lapse a lease: the token still keeps the runs apart', async (t) => {
    await t.append('a')
    const stalled = await t.claimOne({ process: 'p1' })
    t.clock.set(t.clock.now() + LEASE)
    const current = await t.claimOne({ process: 'p2' })
    t.clock.set(t.clock.now() - LEASE)
    assert.equal(await t.settle(stalled, done), 'lost')
    assert.equal(await t.renew(stalled), 'lost')
    assert.equal(await t.settle(current, done), 'ok')
  })

  rule('L21 after a step back events keep their order in the lane', async (t) => {
    await t.append('a', { every: SECOND })
    t.clock.set(t.clock.now() - 5 * SECOND)
    await t.append('b', { every: SECOND })
    t.clock.set(t.clock.now() - 5 * SECOND)
    await t.append('c', { every: 0 })
    t.clock.advance(20 * SECOND)
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c'])
  })

  rule('L21 L7 after a step back no new window delays events left over by a run', async (t) => {
    await t.append('a', { every: SECOND })
    await t.append('b', { every: SECOND })
    await t.settleOk(await t.claimOneAfter(SECOND, { maxEvents: 1 }))
    t.clock.set(t.clock.now() - 5 * SECOND)
    await t.append('c', { every: 60 * SECOND })
    assert.deepEqual(t.names(await t.claimOneAfter(5 * SECOND)), ['b', 'c'])
  })

  rule('L21 after a step back duplicates are still known', async (t) => {
    const words = { dedupe: 'x', body: '-', dedupeFor: SECOND }
    await t.append('a', words)
    t.clock.set(t.clock.now() - 5 * SECOND)
    assert.deepEqual(await t.append('b', words), { kind: 'duplicate', of: t.id('a') })
  })

  rule('L21 after a step back a limit gives waits that end, and hands out no more than its rate', async (t) => {
    const limits = { api: createLimit(1, SECOND) }
    await t.store.reserve({ requests: [createReserveRequest('t1', limits)] })
    t.clock.set(t.clock.now() - 10 * SECOND)
    const second = assertSingle((await t.store.reserve({ requests: [createReserveRequest('t2', limits)] })).results)
    assert.ok(second.kind === 'granted' && second.wait >= SECOND && second.wait <= 12 * SECOND)
  })

  for (const [shape, numbers] of [
    ['window', createLimit(3, SECOND)],
    ['window of many', createLimit(400, SECOND)],
    ['bucket', createLimit(3, SECOND, { burst: 3 })],
  ] as const) {
    rule(`L21 M1 a ${shape} used by a clock that was ahead: after a resume that counts as used now`, async (t) => {
      const { rate } = numbers
      const limits = { api: numbers }
      const reserved = async (name: string): Promise<readonly Millis[]> => {
        const requests = Array.from({ length: rate }, (_, n) => createReserveRequest(`${name} ${n}`, limits))
        return (await t.store.reserve({ requests })).results.map((one) => (one.kind === 'granted' ? one.wait : NEVER))
      }
      t.clock.set(t.clock.now() + DAY)
      assert.equal(Math.max(...(await reserved('ahead'))), 0)
      t.clock.set(t.clock.now() - DAY)
      assert.ok(Math.min(...(await reserved('waits'))) >= DAY)
      await t.store.regulate({ name: 'api', act: { kind: 'resume' } })
      const after = await reserved('waits')
      assert.ok(Math.min(...after) >= SECOND / 3, `not at once: ${Math.min(...after)}`)
      assert.ok(Math.max(...after) <= 1_100, `within a window: ${Math.max(...after)}`)
    })
  }

  rule('L21 after a step back pressure stays within its bounds', async (t) => {
    const flows = [{ flow: 'flow', raise: true }]
    await t.store.updatePressure({ flows })
    t.clock.set(t.clock.now() - 600 * SECOND)
    const level = assertSingle((await t.store.updatePressure({ flows: [{ flow: 'flow', raise: false }] })).levels)
    assert.ok(level >= 0 && level <= 0.25, `${level}`)
  })
}
