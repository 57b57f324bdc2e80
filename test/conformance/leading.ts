// L3 with leading: the first event of a quiet lane runs at once, and a stream is still debounced.
import assert from 'node:assert/strict'
import type { Suite } from './stage.ts'

const words = { quiet: 100, max: 10_000, leading: true } as const

export const leading: Suite = (rule) => {
  rule('L3 leading: the first event of an idle lane is due at once', async (t) => {
    await t.append('a', words)
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L3 leading: an event that joins a due event runs with it', async (t) => {
    await t.append('a', words)
    await t.append('b', words)
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
  })

  rule('L3 leading: an event within quiet after the end of a run waits for its window', async (t) => {
    await t.append('a', words)
    const run = await t.claimOne()
    t.clock.advance(10)
    await t.settleOk(run, { kind: 'done' }, { keep: 100 })
    t.clock.advance(99)
    await t.append('b', words)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })

  rule('L3 leading: an event that long after the end of a run is due at once', async (t) => {
    await t.append('a', words)
    await t.settleOk(await t.claimOne(), { kind: 'done' }, { keep: 100 })
    t.clock.advance(100)
    await t.append('b', words)
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L3 leading: the lane is remembered for keep, despite maintenance', async (t) => {
    await t.append('a', words)
    await t.settleOk(await t.claimOne(), { kind: 'done' }, { keep: 100 })
    t.clock.advance(50)
    await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
    t.clock.advance(49)
    await t.append('b', words)
    await t.assertNothingReady()
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })

  rule('L3 leading: an event during a run is not the first', async (t) => {
    await t.append('a', words)
    const run = await t.claimOne()
    await t.append('b', words)
    await t.settleOk(run, { kind: 'done' }, { keep: 100 })
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })

  rule('L3 leading: an event during a retry wait is not the first', async (t) => {
    await t.append('a', words)
    await t.settleOk(await t.claimOne(), { kind: 'retry', after: 10 }, { keep: 100 })
    await t.append('b', words)
    await t.settleOk(await t.claimOneAfter(10), { kind: 'done' }, { keep: 100 })
    assert.deepEqual(t.names(await t.claimOneAfter(90)), ['b'])
  })

  rule('L3 leading: a run that lost some of its events to a purge has ended like any other', async (t) => {
    await t.append('a', words)
    await t.append('b', words)
    const run = await t.claimOne()
    await t.store.purge({ what: { kind: 'event', id: t.id('b') }, n: 1 })
    assert.equal(await t.settle(run, { kind: 'done' }, { keep: 100 }), 'purged')
    assert.equal(await t.steer('k', 'drop'), 'ok')
    await t.append('c', words)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['c'])
  })

  rule('L3 leading: a stream of events with short runs is debounced, not run one by one', async (t) => {
    let runs = 0
    for (let n = 0; n < 50; n++) {
      await t.append(`e${n}`, { ...words, max: 1_000 })
      for (const run of await t.claim()) {
        runs++
        await t.settleOk(run, { kind: 'done' }, { keep: 100 })
      }
      t.clock.advance(50)
    }
    assert.ok(runs >= 2 && runs <= 4, `${runs} runs in 2.5 s: the first event, then one each 1,000 ms at most`)
  })

  rule('L3 leading: behind a waiting event the next one is not leading', async (t) => {
    await t.append('a', { quiet: 100, max: 10_000 })
    t.clock.advance(50)
    await t.append('b', words)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a', 'b'])
  })
}
