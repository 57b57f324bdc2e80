// L4: a ready lane cannot lose its place, however many events still arrive.
import assert from 'node:assert/strict'
import { getKeys, type Suite } from './stage.ts'
import { done, retry } from './builders.ts'

export const passedDeadlines: Suite = (rule) => {
  rule(
    'L4 a deadline that has passed is not moved by an event in an idle lane, and the event joins the batch',
    async (t) => {
      await t.append('a', { quiet: 100 })
      t.clock.advance(100)
      await t.append('b', { quiet: 100 })
      assert.deepEqual(t.names(await t.claimOne()), ['a', 'b'])
    },
  )

  rule('L4 a deadline that has passed is not moved by an event in a running lane', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 100 })
    t.clock.advance(100)
    await t.append('c', { quiet: 100 })
    t.clock.advance(50)
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOne()), ['b', 'c'])
  })

  rule('L4 a deadline that has passed is not moved by an event during a retry wait', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(200))
    await t.append('b', { quiet: 100 })
    t.clock.advance(150)
    await t.append('c', { quiet: 100 })
    await t.settleOk(await t.claimOneAfter(50))
    assert.deepEqual(t.names(await t.claimOne()), ['b', 'c'])
  })

  rule('L4 a ready lane stays before lanes that became ready later, whichever events join it', async (t) => {
    await t.append('a', { key: 'a', quiet: 100 })
    t.clock.advance(10)
    await t.append('b', { key: 'b', quiet: 100 })
    t.clock.advance(100)
    await t.append('a2', { key: 'a', quiet: 100 })
    await t.append('a3', { key: 'a', quiet: 100, maxEvents: 3 })
    await t.append('a4', { key: 'a', quiet: 100, leading: true })
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })

  rule('L4 an endless stream of events does not keep a lane from being served', async (t) => {
    for (let n = 0; n < 20; n++) {
      await t.append(`e${n}`, { quiet: 100, max: 300 })
      t.clock.advance(90)
    }
    assert.equal((await t.claimOne()).events.length, 20)
  })

  rule('L4 max that has passed during a run is due at its end', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    for (const name of ['b', 'c', 'd']) {
      await t.append(name, { quiet: 100, max: 150 })
      t.clock.advance(80)
    }
    await t.settleOk(run, done)
    assert.deepEqual(t.names(await t.claimOne()), ['b', 'c', 'd'])
  })
}
