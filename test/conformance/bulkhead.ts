// L24: lanes whose last attempt failed have a few slots of their own, so a hundred of them delay no other lane.
import assert from 'node:assert/strict'
import { getKeys, type ConformanceStage, type Suite } from './stage.ts'
import { snoozed, createClaimRequest, done, partial, released, retry } from './builders.ts'

/** Lanes that failed once and are due again, oldest first. */
async function failRuns(t: ConformanceStage, ...names: readonly string[]): Promise<void> {
  for (const key of names) {
    await t.append(key, { key })
    await t.settleOk(await t.claimOne({ maxFailing: 0 }), retry(0))
    t.clock.advance(1)
  }
}

export const bulkhead: Suite = (rule) => {
  rule('L24 a claim gives at most maxFailing slots to lanes whose last attempt failed', async (t) => {
    await failRuns(t, 'f0', 'f1', 'f2', 'f3', 'f4')
    for (const key of ['a', 'b', 'c', 'd']) await t.append(key, { key })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 4, maxFailing: 1 })), ['f0', 'a', 'b', 'c'])
  })

  rule('L24 without slots for failing lanes the healthy ones still run', async (t) => {
    await failRuns(t, 'f0', 'f1')
    await t.append('a', { key: 'a' })
    assert.deepEqual(getKeys(await t.claim({ maxFailing: 0 })), ['a'])
  })

  rule('L24 a failing lane that was passed over keeps its place', async (t) => {
    await failRuns(t, 'f0', 'f1')
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1, maxFailing: 0 })), ['a'])
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, maxFailing: 1 })), ['f0', 'b'])
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, maxFailing: 1 })), ['f1'])
  })

  rule('L24 many failing lanes at the front do not hide the healthy ones behind them', async (t) => {
    const many = Array.from({ length: 300 }, (_, n) => `f${n}`)
    await t.appendEvents(...many.map((key) => t.event(key, { key })))
    for (const run of await t.claim({ maxRuns: 300 })) await t.settleOk(run, retry(0))
    t.clock.advance(1)
    await t.append('healthy', { key: 'healthy' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1, maxFailing: 0 })), ['healthy'])
  })

  rule('L24 failing lanes may fill their slots even when nothing else is ready, and no more', async (t) => {
    await failRuns(t, 'f0', 'f1', 'f2')
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 10, maxFailing: 2 })), ['f0', 'f1'])
  })

  rule('L24 the rest of a partial run is failing', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('b')] }))
    await t.assertNothingReady({ maxFailing: 0 })
    assert.deepEqual(t.names(await t.claimOne({ maxFailing: 1 })), ['b'])
  })

  rule(
    'L24 a lane is healthy after its run is done, and after a snooze or release of a run that never failed',
    async (t) => {
      await failRuns(t, 'f0')
      await t.settleOk(await t.claimOne(), done)
      await t.append('more', { key: 'f0' })
      assert.deepEqual(getKeys(await t.claim({ maxFailing: 0 })), ['f0'])
      for (const outcome of [snoozed(0), released]) {
        await t.append(outcome.kind, { key: outcome.kind })
        await t.settleOk(await t.claimOne({ maxFailing: 0 }), outcome)
        assert.equal((await t.claimOne({ maxFailing: 0 })).key, outcome.kind)
      }
    },
  )

  rule('L24 a first lapse is not a failure', async (t) => {
    await t.append('a')
    await t.claimOne()
    t.expireLeases()
    assert.deepEqual(getKeys(await t.claim({ maxFailing: 0 })), ['k'])
  })

  rule('L24 nextDeadlines leaves out lanes that the claim had no slots for', async (t) => {
    await failRuns(t, 'f0')
    await t.append('later', { key: 'later', quiet: 5_000 })
    const due = t.clock.now() + 5_000
    const { nextDeadlines: heads } = await t.settleAndClaim({ claim: [createClaimRequest({ maxFailing: 0 })] })
    assert.equal(heads[0]?.due, due)
    const all = await t.settleAndClaim({ claim: [createClaimRequest({ maxRuns: 0, maxFailing: 0 })] })
    assert.ok((all.nextDeadlines[0]?.due ?? due) < due)
  })

  rule('L24 with shares the healthy lanes of a group do not wait for its failing ones', async (t) => {
    await t.append('f', { key: 'f', group: 'acme' })
    await t.settleOk(await t.claimOne(), retry(0))
    t.clock.advance(1)
    await t.append('a', { key: 'a', group: 'acme' })
    assert.deepEqual(getKeys(await t.claim({ maxFailing: 0, maxPerGroup: 5 })), ['a'])
  })
}
