// L6: what comes while a lane runs, retry waits included, forms a window of its own and never joins the run.
import assert from 'node:assert/strict'
import { keys, only, type Suite } from './stage.ts'
import { again, dead, done, place, released, retry } from './vocabulary.ts'

export const duringRun: Suite = (rule) => {
  rule('L6 window: events that came during a run are due when their window ends, if that is later', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { quiet: 100 })
    t.clock.advance(40)
    await t.end(run, done, { whileRunning: 'window' })
    assert.deepEqual(t.names(await t.dueIn(60)), ['b'])
  })

  rule('L6 window: they are due at the end of the run, if that is later', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { quiet: 100 })
    t.clock.advance(5_000)
    await t.end(run, done, { whileRunning: 'window' })
    const next = await t.next()
    assert.deepEqual(t.names(next), ['b'])
    assert.equal(next.due, t.clock.now())
  })

  rule('L6 requeue: they are due at the end of the run, though their window is later', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { quiet: 60_000 })
    t.clock.advance(40)
    await t.end(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L6 requeue: they go behind lanes that were ready before', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.next()
    await t.append('a2', { key: 'a', quiet: 1 })
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.append('c', { key: 'c' })
    await t.end(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(keys(await t.claim()), ['b', 'c', 'a'])
  })

  rule('L6 nothing new, nothing due: a run that ends alone leaves an idle lane', async (t) => {
    await t.append('a')
    await t.end(await t.next(), done, { whileRunning: 'requeue' })
    t.clock.advance(86_400_000)
    await t.nothing()
  })

  rule('L6 events during a live run do not join it', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b')
    t.lapse()
    const back = await t.next()
    assert.equal(back.run, run.run)
    assert.deepEqual(t.names(back), ['a'])
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  for (const [what, outcome] of [
    ['retry', retry(100)],
    ['again', again(100)],
  ] as const) {
    rule(`L6 a wait after ${what} is part of the run: what comes then waits until the run ends`, async (t) => {
      await t.append('a')
      await t.end(await t.next(), outcome)
      await t.append('b')
      await t.nothing()
      const back = await t.dueIn(100)
      assert.deepEqual(t.names(back), ['a'])
      await t.end(back)
      assert.deepEqual(t.names(await t.next()), ['b'])
    })
  }

  rule(
    'L6 a window that passed during a retry wait is due at the end of the run, with requeue and without',
    async (t) => {
      for (const whileRunning of ['window', 'requeue'] as const) {
        await t.append(`${whileRunning} a`)
        await t.end(await t.next(), retry(1_000))
        await t.append(`${whileRunning} b`, { quiet: 100 })
        await t.end(await t.dueIn(1_000), done, { whileRunning })
        const next = await t.next()
        assert.deepEqual(t.names(next), [`${whileRunning} b`])
        await t.end(next)
      }
    },
  )

  rule('L6 events that came before a release wait until the run ends', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b')
    await t.end(run, released)
    const back = await t.next()
    assert.deepEqual([back.run, t.names(back)], [run.run, ['a']])
  })

  rule('L6 requeue speaks of runs that took live events: a replay brings no window forward', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.end(await t.next())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), places: [place()] }] as const
    await t.store.place({ routes: t.routes, items })
    const run = await t.next()
    await t.append('a', { quiet: 1_000 })
    await t.end(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.dueIn(1_000)), ['a'])
  })

  rule('L6 requeue speaks of runs that took live events: a dead letter brings no window forward', async (t) => {
    await t.append('a')
    await t.end(await t.next(), dead)
    await t.steerDead(only(await t.all('dead')).id, 'retry')
    const run = await t.next()
    await t.append('b', { quiet: 1_000 })
    await t.end(run, done, { whileRunning: 'requeue' })
    assert.deepEqual(t.names(await t.dueIn(1_000)), ['b'])
  })

  rule('L6 a window that formed before the run ends the same way when the run dies', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.append('b', { quiet: 100 })
    await t.end(run, dead)
    assert.deepEqual(t.names(await t.dueIn(100)), ['b'])
  })
}
