// An operator may bring a lane forward, or drop its waiting events. A live run is never touched.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import { getKeys, sorted, type Suite } from './stage.ts'
import { snoozed, cancelled, LEASE, createPlacement, retry } from './builders.ts'

export const steering: Suite = (rule) => {
  rule('run-now: a window that has not passed is due now', async (t) => {
    await t.append('a', { quiet: 60_000 })
    assert.equal(await t.steer('k', 'run-now'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  for (const outcome of [retry(60_000), snoozed(60_000)]) {
    rule(`run-now: the next attempt of a run that waits after ${outcome.kind} is due now`, async (t) => {
      await t.append('a')
      const run = await t.claimOne()
      await t.settleOk(run, outcome)
      assert.equal(await t.steer('k', 'run-now'), 'ok')
      assert.equal((await t.claimOne()).runId, run.runId)
    })
  }

  rule('run-now goes behind lanes that were ready before', async (t) => {
    await t.append('a', { key: 'a', quiet: 60_000 })
    await t.append('b', { key: 'b' })
    t.clock.advance(10)
    await t.steer('a', 'run-now')
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })

  rule('run-now returns already for a ready lane, running beside a live run, and missing without a lane', async (t) => {
    assert.equal(await t.steer('k', 'run-now'), 'missing')
    await t.append('a')
    assert.equal(await t.steer('k', 'run-now'), 'already')
    await t.claimOne()
    await t.append('b', { quiet: 60_000 })
    assert.equal(await t.steer('k', 'run-now'), 'running')
  })

  rule('run-now returns already when the next attempt is due, and the lane keeps its place', async (t) => {
    await t.append('a', { key: 'a' })
    await t.settleOk(await t.claimOne(), retry(0))
    await t.append('lapsed', { key: 'lapsed' })
    await t.claim({ maxFailing: 0, lease: 1 })
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    assert.equal(await t.steer('a', 'run-now'), 'already')
    assert.equal(await t.steer('lapsed', 'run-now'), 'already')
    assert.deepEqual(getKeys(await t.claim()), ['a', 'lapsed', 'b'])
  })

  rule('drop ends all waiting events', async (t) => {
    await t.appendEach(['a', 'b'], { quiet: 100 })
    assert.equal(await t.steer('k', 'drop'), 'ok')
    t.clock.advance(10_000)
    await t.assertNothingReady()
    const ended = (await t.findAll('runs')).filter((run) => run.kind === 'dropped')
    assert.deepEqual(sorted(t.names(ended.flatMap((run) => run.events))), ['a', 'b'])
    await t.append('c')
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('drop ends waiting replays', async (t) => {
    await t.append('old')
    await t.settleOk(await t.claimOne())
    const replay = { kind: 'replay', replay: 'r', event: t.id('old'), placements: [createPlacement()] } as const
    await t.store.place({ routes: t.routes, items: [replay] })
    assert.equal(await t.steer('k', 'drop'), 'ok')
    await t.assertNothingReady()
    await t.append('new')
    assert.deepEqual(t.names(await t.claimOne()), ['new'])
    assert.equal((await t.getLane('k'))?.replays, 0)
  })

  rule('drop ends a run between attempts', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(100))
    await t.append('b')
    assert.equal(await t.steer('k', 'drop'), 'ok')
    t.clock.advance(10_000)
    await t.assertNothingReady()
    assert.deepEqual(await t.findAll('dead'), [])
  })

  rule('drop leaves a live run its lease, its events and its settlement', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b')
    await t.steer('k', 'drop')
    t.clock.advance(LEASE - 1)
    assert.equal(await t.renew(run), 'ok')
    await t.settleOk(run, retry(0))
    const back = await t.claimOne()
    assert.deepEqual(t.names(back), ['a'])
    await t.settleOk(back)
    await t.assertNothingReady()
  })

  rule('drop ends only the placement in that lane', async (t) => {
    await t.append('a', { keys: ['x', 'y'], quiet: 100 })
    await t.steer('x', 'drop')
    const run = await t.claimOneAfter(100)
    assert.deepEqual([run.key, t.names(run)], ['y', ['a']])
    assert.ok(run.events[0]?.body)
  })

  rule('several lanes are steered in one call, each with its own result', async (t) => {
    await t.append('a', { key: 'a', quiet: 60_000 })
    await t.append('b', { key: 'b' })
    const ids = ['nobody', 'a', 'b'].map((key) => laneId('flow', key))
    const { results } = await t.store.steer({ what: 'lanes', ids, act: { kind: 'run-now' } })
    assert.deepEqual(results, ['missing', 'ok', 'already'])
    assert.deepEqual(sorted(getKeys(await t.claim())), ['a', 'b'])
  })

  rule('L6c by hand: a live run is cancelled if it can be; without new events it is due at once', async (t) => {
    assert.equal(await t.steer('k', 'cancel'), 'missing')
    await t.append('a', { quiet: 100, max: 300 })
    const run = await t.claimOneAfter(100)
    assert.equal(await t.steer('k', 'cancel'), 'ok')
    assert.equal(await t.renew(run), 'cancel')
    await t.settleOk(run, cancelled)
    const next = await t.claimOne()
    assert.deepEqual(t.names(next), ['a'])
    assert.notEqual(next.runId, run.runId)
    await t.renew(next, { commit: true })
    assert.equal(await t.steer('k', 'cancel'), 'already')
    await t.settleOk(next, retry(1_000))
    assert.equal(await t.steer('k', 'cancel'), 'missing')
  })
}
