// L4: a lane that is ready cannot lose its place, however many events still come.
import assert from 'node:assert/strict'
import { keys, type Suite } from './stage.ts'
import { done, retry } from './vocabulary.ts'

export const passedDeadlines: Suite = (rule) => {
  rule(
    'L4 a deadline that has passed is not moved by an event in an idle lane, and the event joins the batch',
    async (t) => {
      await t.append('a', { quiet: 100 })
      t.clock.advance(100)
      await t.append('b', { quiet: 100 })
      assert.deepEqual(t.names(await t.next()), ['a', 'b'])
    },
  )

  rule('L4 a deadline that has passed is not moved by an event in a running lane', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { quiet: 100 })
    t.clock.advance(100)
    await t.append('c', { quiet: 100 })
    t.clock.advance(50)
    await t.end(run)
    assert.deepEqual(t.names(await t.next()), ['b', 'c'])
  })

  rule('L4 a deadline that has passed is not moved by an event during a retry wait', async (t) => {
    await t.append('a')
    await t.end(await t.next(), retry(200))
    await t.append('b', { quiet: 100 })
    t.clock.advance(150)
    await t.append('c', { quiet: 100 })
    await t.end(await t.dueIn(50))
    assert.deepEqual(t.names(await t.next()), ['b', 'c'])
  })

  rule('L4 a ready lane stays before lanes that became ready after it, whatever joins it', async (t) => {
    await t.append('a', { key: 'a', quiet: 100 })
    t.clock.advance(10)
    await t.append('b', { key: 'b', quiet: 100 })
    t.clock.advance(100)
    await t.append('a2', { key: 'a', quiet: 100 })
    await t.append('a3', { key: 'a', quiet: 100, maxEvents: 3 })
    await t.append('a4', { key: 'a', quiet: 100, leading: true })
    assert.deepEqual(keys(await t.claim()), ['a', 'b'])
  })

  rule('L4 a stream that never stops does not keep a lane from its turn', async (t) => {
    for (let n = 0; n < 20; n++) {
      await t.append(`e${n}`, { quiet: 100, max: 300 })
      t.clock.advance(90)
    }
    assert.equal((await t.next()).events.length, 20)
  })

  rule('L4 max that has passed during a run is due at its end', async (t) => {
    await t.append('a')
    const run = await t.next()
    for (const name of ['b', 'c', 'd']) {
      await t.append(name, { quiet: 100, max: 150 })
      t.clock.advance(80)
    }
    await t.end(run, done)
    assert.deepEqual(t.names(await t.next()), ['b', 'c', 'd'])
  })
}
