// L14: what is paused or held is not claimed, while arrivals, windows and deadlines go on; every hold says why.
import assert from 'node:assert/strict'
import { NEVER } from '../../clock.ts'
import { keys, type Suite } from './stage.ts'
import { dead, done, retry } from './vocabulary.ts'

export const holds: Suite = (rule) => {
  rule('L14 a paused flow gives nothing; events still arrive, and other flows go on', async (t) => {
    await t.append('a')
    assert.equal(await t.pause(), 'ok')
    assert.deepEqual(await t.append('b'), { kind: 'stored' })
    await t.append('c', { flow: 'mail' })
    await t.nothing()
    assert.deepEqual(t.names(await t.next({ flow: 'mail' })), ['c'])
    assert.equal(await t.resume(), 'ok')
    assert.deepEqual(t.names(await t.next()), ['a', 'b'])
  })

  rule('L14 after a pause lanes are served by their old deadlines', async (t) => {
    await t.append('late', { key: 'late', quiet: 200 })
    await t.pause()
    await t.append('early', { key: 'early', quiet: 100 })
    t.clock.advance(10_000)
    await t.append('now', { key: 'now' })
    await t.resume()
    assert.deepEqual(keys(await t.claim()), ['early', 'late', 'now'])
  })

  rule('L14 live runs of a paused flow are renewed and finish', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.pause()
    t.clock.advance(1_000)
    assert.equal(await t.renew(run), 'ok')
    await t.end(run)
    await t.nothing()
  })

  rule('L14 a pause says why, by whom and since when, and a second one is already so', async (t) => {
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
    await t.nothing()
  })

  rule('L14 a held lane is not claimed until the hold ends, then by that time; others go on', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.equal(await t.hold('a', 1_000), 'ok')
    assert.deepEqual(keys(await t.claim()), ['b'])
    await t.append('a2', { key: 'a' })
    await t.append('c', { key: 'c', quiet: 999 })
    await t.append('d', { key: 'd', quiet: 1_001 })
    t.clock.advance(999)
    assert.deepEqual(keys(await t.claim()), ['c'])
    t.clock.advance(2)
    assert.deepEqual(keys(await t.claim()), ['a', 'd'])
  })

  rule('L14 a hold that ends before the window does not bring it forward', async (t) => {
    await t.append('a', { quiet: 5_000 })
    await t.hold('k', 1_000)
    assert.deepEqual(t.names(await t.dueIn(5_000)), ['a'])
  })

  rule('L14 windows go on under a hold', async (t) => {
    await t.append('a', { quiet: 100, max: 300 })
    await t.hold('k', NEVER)
    t.clock.advance(50)
    await t.append('b', { quiet: 100, max: 300 })
    t.clock.advance(10_000)
    await t.nothing()
    assert.equal(await t.steer('k', 'unhold'), 'ok')
    const run = await t.next()
    assert.deepEqual(t.names(run), ['a', 'b'])
  })

  rule('L14 unhold: served by the old deadline, before lanes that became ready since', async (t) => {
    await t.append('a', { key: 'a' })
    await t.hold('a', NEVER)
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.steer('a', 'unhold')
    assert.deepEqual(keys(await t.claim()), ['a', 'b'])
  })

  rule('L14 a hold says why, by whom and until when', async (t) => {
    await t.append('a')
    await t.hold('k', 5_000)
    assert.deepEqual((await t.lane('k'))?.hold, { reason: 'looking', by: 'ada', until: t.clock.now() + 5_000 })
    await t.steer('k', 'unhold')
    assert.equal((await t.lane('k'))?.hold, undefined)
  })

  rule('L14 the live run of a held lane is renewed and finishes; what waits is held', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b')
    await t.hold('k', 1_000)
    t.clock.advance(500)
    assert.equal(await t.renew(run), 'ok')
    await t.end(run)
    assert.deepEqual(t.names(await t.dueIn(500)), ['b'])
  })

  rule('L14 a retry and a queued dead letter of a held lane wait as well', async (t) => {
    await t.append('a')
    const letter = await t.next()
    await t.end(letter, dead)
    await t.append('b')
    await t.end(await t.next(), retry(100))
    await t.hold('k', 1_000)
    await t.steerDead(letter.run, 'retry')
    assert.deepEqual(t.names(await t.dueIn(1_000)), ['b'])
  })

  rule('L14 a held lane that runs dry is still held when events come', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.hold('k', 60_000)
    await t.end(run)
    await t.upkeep({ events: { '': 0 }, runs: { '': 0 } })
    await t.append('b')
    await t.nothing()
    assert.deepEqual(t.names(await t.dueIn(60_000)), ['b'])
  })

  rule('L14 a lane nobody knows is missing, and one that is not held is so already', async (t) => {
    assert.equal(await t.steer('nobody', 'unhold'), 'missing')
    await t.append('a', { quiet: 100 })
    assert.equal(await t.steer('k', 'unhold'), 'already')
  })

  rule(
    'L14 L21 a hold that is over stays so in a lane that is only remembered, should the clock be set back',
    async (t) => {
      await t.append('a')
      const run = await t.next()
      await t.hold('k', 50)
      t.clock.advance(60)
      await t.end(run, done, { keep: 1_000 })
      assert.equal((await t.lane('k'))?.hold, undefined)
      t.clock.set(t.clock.now() - 40)
      await t.append('b')
      assert.deepEqual(t.names(await t.next()), ['b'])
    },
  )

  rule('L14 a hold that moves no deadline costs no place', async (t) => {
    await t.append('a', { key: 'a', quiet: 100 })
    await t.append('b', { key: 'b', quiet: 100 })
    await t.hold('a', 50)
    t.clock.advance(100)
    assert.deepEqual(keys(await t.claim()), ['a', 'b'])
  })
}
