// L14: paused flows and held lanes are not claimed, while arrivals, windows and deadlines continue. Every hold has a reason.
import assert from 'node:assert/strict'
import { NEVER } from '../../src/clock.ts'
import { getKeys, type Suite } from './stage.ts'
import { dead, done, retry } from './builders.ts'

export const holds: Suite = (rule) => {
  rule('L14 a paused flow is not claimed; events still arrive, and other flows continue', async (t) => {
    await t.append('a')
    assert.equal(await t.pause(), 'ok')
    assert.deepEqual(await t.append('b'), { kind: 'stored' })
    await t.append('c', { flow: 'mail' })
    await t.assertNothingReady()
    assert.deepEqual(t.names(await t.claimOne({ flow: 'mail' })), ['c'])
    assert.equal(await t.resume(), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
  })

  rule('L14 after a pause lanes are served by their old deadlines', async (t) => {
    await t.append('late', { key: 'late', quiet: 200 })
    await t.pause()
    await t.append('early', { key: 'early', quiet: 100 })
    t.clock.advance(10_000)
    await t.append('now', { key: 'now' })
    await t.resume()
    assert.deepEqual(getKeys(await t.claim()), ['early', 'late', 'now'])
  })

  rule('L14 live runs of a paused flow are renewed and finish', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.pause()
    t.clock.advance(1_000)
    assert.equal(await t.renew(run), 'ok')
    await t.settleOk(run)
    await t.assertNothingReady()
  })

  rule('L14 a pause has a reason, an author and a start, and a second one returns already', async (t) => {
    await t.append('a')
    const since = t.clock.now()
    await t.pause()
    t.clock.advance(1_000)
    assert.equal(await t.pause(), 'already')
    const flow = (await t.store.stats()).flows.find((each) => each.flow === 'flow')
    assert.deepEqual(flow?.paused, { reason: 'deploy', by: 'ada', since })
    await t.resume()
    assert.equal(await t.resume(), 'already')
    assert.equal((await t.store.stats()).flows.find((each) => each.flow === 'flow')?.paused, undefined)
  })

  rule('L14 a flow can be paused before it has a lane', async (t) => {
    assert.equal(await t.pause(), 'ok')
    await t.append('a')
    await t.assertNothingReady()
  })

  rule('L14 a held lane is not claimed until the hold ends, then by that time; others continue', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.equal(await t.hold('a', 1_000), 'ok')
    assert.deepEqual(getKeys(await t.claim()), ['b'])
    await t.append('a2', { key: 'a' })
    await t.append('c', { key: 'c', quiet: 999 })
    await t.append('d', { key: 'd', quiet: 1_001 })
    t.clock.advance(999)
    assert.deepEqual(getKeys(await t.claim()), ['c'])
    t.clock.advance(2)
    assert.deepEqual(getKeys(await t.claim()), ['a', 'd'])
  })

  rule('L14 a hold that ends before the window does not bring it forward', async (t) => {
    await t.append('a', { quiet: 5_000 })
    await t.hold('k', 1_000)
    assert.deepEqual(t.names(await t.claimOneAfter(5_000)), ['a'])
  })

  rule('L14 windows continue under a hold', async (t) => {
    await t.append('a', { quiet: 100, max: 300 })
    await t.hold('k', NEVER)
    t.clock.advance(50)
    await t.append('b', { quiet: 100, max: 300 })
    t.clock.advance(10_000)
    await t.assertNothingReady()
    assert.equal(await t.steer('k', 'unhold'), 'ok')
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['a', 'b'])
  })

  rule('L14 unhold: served by the old deadline, before lanes that became ready since', async (t) => {
    await t.append('a', { key: 'a' })
    await t.hold('a', NEVER)
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.steer('a', 'unhold')
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })

  rule('L14 a hold has a reason, an author and an end', async (t) => {
    await t.append('a')
    await t.hold('k', 5_000)
    assert.deepEqual((await t.getLane('k'))?.hold, { reason: 'looking', by: 'ada', until: t.clock.now() + 5_000 })
    await t.steer('k', 'unhold')
    assert.equal((await t.getLane('k'))?.hold, undefined)
  })

  rule('L14 the live run of a held lane is renewed and finishes; waiting events are held', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b')
    await t.hold('k', 1_000)
    t.clock.advance(500)
    assert.equal(await t.renew(run), 'ok')
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOneAfter(500)), ['b'])
  })

  rule('L14 a retry and a queued dead letter of a held lane wait as well', async (t) => {
    await t.append('a')
    const deadLetter = await t.claimOne()
    await t.settleOk(deadLetter, dead)
    await t.append('b')
    await t.settleOk(await t.claimOne(), retry(100))
    await t.hold('k', 1_000)
    await t.steerDeadLetter(deadLetter.runId, 'retry')
    assert.deepEqual(t.names(await t.claimOneAfter(1_000)), ['b'])
  })

  rule('L14 a held lane without events is still held when events arrive', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.hold('k', 60_000)
    await t.settleOk(run)
    await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
    await t.append('b')
    await t.assertNothingReady()
    assert.deepEqual(t.names(await t.claimOneAfter(60_000)), ['b'])
  })

  rule('L14 an unknown lane is missing, and unhold without a hold returns already', async (t) => {
    assert.equal(await t.steer('nobody', 'unhold'), 'missing')
    await t.append('a', { quiet: 100 })
    assert.equal(await t.steer('k', 'unhold'), 'already')
  })

  rule(
    'L14 L21 an expired hold of a lane that is only remembered stays expired if the clock is set back',
    async (t) => {
      await t.append('a')
      const run = await t.claimOne()
      await t.hold('k', 50)
      t.clock.advance(60)
      await t.settleOk(run, done, { keep: 1_000 })
      assert.equal((await t.getLane('k'))?.hold, undefined)
      t.clock.set(t.clock.now() - 40)
      await t.append('b')
      assert.deepEqual(t.names(await t.claimOne()), ['b'])
    },
  )

  rule('L14 a hold that moves no deadline keeps the place of the lane', async (t) => {
    await t.append('a', { key: 'a', quiet: 100 })
    await t.append('b', { key: 'b', quiet: 100 })
    await t.hold('a', 50)
    t.clock.advance(100)
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })
}
