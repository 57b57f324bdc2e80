// L6: events that arrive while a lane runs, waits for retries included, form a window of their own and never join the run.
import assert from 'node:assert/strict'
import { getKeys, assertSingle, type Suite } from './stage.ts'
import { snoozed, dead, done, createPlacement, released, retry } from './builders.ts'

export const duringRun: Suite = (rule) => {
  rule('L6 window: events that arrived during a run are due when their window ends, if that is later', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 100 })
    t.clock.advance(40)
    await t.settleOk(run, done, { whileRunning: 'window' })
    assert.deepEqual(t.names(await t.claimOneAfter(60)), ['b'])
  })

  rule('L6 window: they are due at the end of the run, if that is later', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 100 })
    t.clock.advance(5_000)
    await t.settleOk(run, done, { whileRunning: 'window' })
    const next = await t.claimOne()
    assert.deepEqual(t.names(next), ['b'])
    assert.equal(next.due, t.clock.now())
  })

  rule('L6 requeue: they are due at the end of the run, though their window is later', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 60_000 })
    t.clock.advance(40)
    await t.settleOk(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L6 requeue: they go behind lanes that were ready before', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.claimOne()
    await t.append('a2', { key: 'a', quiet: 1 })
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.append('c', { key: 'c' })
    await t.settleOk(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(getKeys(await t.claim()), ['b', 'c', 'a'])
  })

  rule('L6 nothing new, nothing due: a run that ends alone leaves an idle lane', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), done, { whileRunning: 'requeue' })
    t.clock.advance(86_400_000)
    await t.assertNothingReady()
  })

  rule('L6 events during a live run do not join it', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b')
    t.expireLeases()
    const back = await t.claimOne()
    assert.equal(back.runId, run.runId)
    assert.deepEqual(t.names(back), ['a'])
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  for (const [what, outcome] of [
    ['retry', retry(100)],
    ['snoozed', snoozed(100)],
  ] as const) {
    rule(`L6 a wait after ${what} is part of the run: events that arrive then wait until the run ends`, async (t) => {
      await t.append('a')
      await t.settleOk(await t.claimOne(), outcome)
      await t.append('b')
      await t.assertNothingReady()
      const back = await t.claimOneAfter(100)
      assert.deepEqual(t.names(back), ['a'])
      await t.settleOk(back)
      assert.deepEqual(t.names(await t.claimOne()), ['b'])
    })
  }

  rule(
    'L6 a window that passed during a retry wait is due at the end of the run, with requeue and without',
    async (t) => {
      for (const whileRunning of ['window', 'requeue'] as const) {
        await t.append(`${whileRunning} a`)
        await t.settleOk(await t.claimOne(), retry(1_000))
        await t.append(`${whileRunning} b`, { quiet: 100 })
        await t.settleOk(await t.claimOneAfter(1_000), done, { whileRunning })
        const next = await t.claimOne()
        assert.deepEqual(t.names(next), [`${whileRunning} b`])
        await t.settleOk(next)
      }
    },
  )

  rule('L6 events that arrived before a release wait until the run ends', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b')
    await t.settleOk(run, released)
    const back = await t.claimOne()
    assert.deepEqual([back.runId, t.names(back)], [run.runId, ['a']])
  })

  rule('L6 requeue applies to runs of live events: a replay brings no window forward', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.settleOk(await t.claimOne())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), placements: [createPlacement()] }] as const
    await t.store.place({ routes: t.routes, items })
    const run = await t.claimOne()
    await t.append('a', { quiet: 1_000 })
    await t.settleOk(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.claimOneAfter(1_000)), ['a'])
  })

  rule('L6 requeue applies to runs of live events: a dead letter brings no window forward', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), dead)
    await t.steerDeadLetter(assertSingle(await t.findAll('dead')).id, 'retry')
    const run = await t.claimOne()
    await t.append('b', { quiet: 1_000 })
    await t.settleOk(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.claimOneAfter(1_000)), ['b'])
  })

  rule('L6 a window that formed before the run ends the same way when the run dies', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { quiet: 100 })
    await t.settleOk(run, dead)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })
}
