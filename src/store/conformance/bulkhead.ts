// L24: lanes whose last attempt failed have a few slots of their own, so that a hundred of them hold up nobody else.
import assert from 'node:assert/strict'
import { keys, type Stage, type Suite } from './stage.ts'
import { again, claimOf, done, partial, released, retry } from './vocabulary.ts'

/** Lanes that failed once and are due again, oldest first. */
async function failing(t: Stage, ...names: readonly string[]): Promise<void> {
  for (const key of names) {
    await t.append(key, { key })
    await t.end(await t.next({ failing: 0 }), retry(0))
    t.clock.advance(1)
  }
}

export const bulkhead: Suite = (rule) => {
  rule('L24 of the slots of a claim, at most so many go to lanes whose last attempt failed', async (t) => {
    await failing(t, 'f0', 'f1', 'f2', 'f3', 'f4')
    for (const key of ['a', 'b', 'c', 'd']) await t.append(key, { key })
    assert.deepEqual(keys(await t.claim({ slots: 4, failing: 1 })), ['f0', 'a', 'b', 'c'])
  })

  rule('L24 without slots for failing lanes the healthy ones still run', async (t) => {
    await failing(t, 'f0', 'f1')
    await t.append('a', { key: 'a' })
    assert.deepEqual(keys(await t.claim({ failing: 0 })), ['a'])
  })

  rule('L24 a lane passed over for that reason keeps its place', async (t) => {
    await failing(t, 'f0', 'f1')
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.deepEqual(keys(await t.claim({ slots: 1, failing: 0 })), ['a'])
    assert.deepEqual(keys(await t.claim({ slots: 2, failing: 1 })), ['f0', 'b'])
    assert.deepEqual(keys(await t.claim({ slots: 2, failing: 1 })), ['f1'])
  })

  rule('L24 many failing lanes at the front do not hide the healthy ones behind them', async (t) => {
    const many = Array.from({ length: 300 }, (_, n) => `f${n}`)
    await t.send(...many.map((key) => t.event(key, { key })))
    for (const run of await t.claim({ slots: 300 })) await t.end(run, retry(0))
    t.clock.advance(1)
    await t.append('healthy', { key: 'healthy' })
    assert.deepEqual(keys(await t.claim({ slots: 1, failing: 0 })), ['healthy'])
  })

  rule('L24 failing lanes may fill their slots even when nothing else is ready, and no more', async (t) => {
    await failing(t, 'f0', 'f1', 'f2')
    assert.deepEqual(keys(await t.claim({ slots: 10, failing: 2 })), ['f0', 'f1'])
  })

  rule('L24 the rest of a partial run is failing', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next(), partial({ retry: [t.id('b')] }))
    await t.nothing({ failing: 0 })
    assert.deepEqual(t.names(await t.next({ failing: 1 })), ['b'])
  })

  rule(
    'L24 a lane is healthy after its run is done, and after again and release of a run that never failed',
    async (t) => {
      await failing(t, 'f0')
      await t.end(await t.next(), done)
      await t.append('more', { key: 'f0' })
      assert.deepEqual(keys(await t.claim({ failing: 0 })), ['f0'])
      for (const outcome of [again(0), released]) {
        await t.append(outcome.kind, { key: outcome.kind })
        await t.end(await t.next({ failing: 0 }), outcome)
        assert.equal((await t.next({ failing: 0 })).key, outcome.kind)
      }
    },
  )

  rule('L24 a first lapse is not a failure', async (t) => {
    await t.append('a')
    await t.next()
    t.lapse()
    assert.deepEqual(keys(await t.claim({ failing: 0 })), ['k'])
  })

  rule('L24 heads look past lanes that the claim had no slots for', async (t) => {
    await failing(t, 'f0')
    await t.append('later', { key: 'later', quiet: 5_000 })
    const due = t.clock.now() + 5_000
    const { heads } = await t.turn({ claim: [claimOf({ failing: 0 })] })
    assert.equal(heads[0]?.due, due)
    const all = await t.turn({ claim: [claimOf({ slots: 0, failing: 0 })] })
    assert.ok((all.heads[0]?.due ?? due) < due)
  })

  rule('L24 with shares the healthy lanes of a group do not wait for its failing ones', async (t) => {
    await t.append('f', { key: 'f', group: 'acme' })
    await t.end(await t.next(), retry(0))
    t.clock.advance(1)
    await t.append('a', { key: 'a', group: 'acme' })
    assert.deepEqual(keys(await t.claim({ failing: 0, perGroup: 5 })), ['a'])
  })
}
