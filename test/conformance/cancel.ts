// L6c: a new event may ask the live run to cancel. Only the run's own settlement decides, within bounds.
import assert from 'node:assert/strict'
import type { LeasedRun } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { snoozed, cancelled, dead, done, LEASE, createPlacement, released, retry } from './builders.ts'

const words = { quiet: 100, max: 300 } as const
const cancelling = { ...words, cancel: true } as const

/** A run of `a`, claimed 100 ms after its arrival; its cap is 200 ms away. */
async function claimRunning(t: ConformanceStage): Promise<LeasedRun> {
  await t.append('a', words)
  return t.claimOneAfter(100)
}

async function replayEvent(t: ConformanceStage, name: string): Promise<void> {
  const items = [
    { kind: 'replay', replay: `r-${name}`, event: t.id(name), placements: [createPlacement(cancelling)] },
  ] as const
  assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['placed'])
}

export const cancel: Suite = (rule) => {
  rule('L6c an event with cancel makes renewals return cancel; the lease is extended all the same', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    t.clock.advance(LEASE - 1)
    assert.equal(await t.renew(run), 'cancel')
    t.clock.advance(LEASE - 1)
    assert.equal(await t.renew(run), 'cancel')
  })

  rule('L6c an event without cancel does not cancel the run', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', words)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c cancelled puts the events back before the new ones, in one window, and uses no attempt', async (t) => {
    const run = await claimRunning(t)
    t.clock.advance(20)
    await t.append('b', cancelling)
    t.clock.advance(30)
    await t.settleOk(run, cancelled)
    const next = await t.claimOneAfter(70)
    assert.deepEqual(t.names(next), ['a', 'b'])
    assert.deepEqual([next.tries, next.lapses, next.parent], [0, 0, ''])
  })

  rule('L6c the id of a cancelled run is retired, and its token too', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    await t.settleOk(run, cancelled)
    assert.equal(await t.settle(run, done), 'lost')
    assert.equal((await t.store.get({ kind: 'runs', id: run.runId })).item?.kind, 'cancelled')
    const next = await t.claimOneAfter(100)
    assert.notEqual(next.runId, run.runId)
    assert.notEqual(next.token, run.token)
  })

  rule('L6c the window of a cancelled run ends at its earliest cap, however late the new events are', async (t) => {
    const run = await claimRunning(t)
    t.clock.advance(150)
    await t.append('b', cancelling)
    t.clock.advance(10)
    await t.settleOk(run, cancelled)
    assert.deepEqual(t.names(await t.claimOneAfter(40)), ['a', 'b'])
  })

  rule('L6c a run cancelled after its cap is due at once, behind lanes that were ready', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    await t.append('other', { key: 'other', quiet: 400, max: 4_000 })
    t.clock.advance(500)
    await t.settleOk(run, cancelled)
    const [first, second] = await t.claim()
    assert.ok(first && second)
    assert.deepEqual([first.key, t.names(second)], ['other', ['a', 'b']])
  })

  rule('L6c a run asked to cancel may still be done, and the new events wait for their window', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    await t.settleOk(run, done)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b'])
  })

  rule('L6c once the earliest cap has passed no event cancels the run', async (t) => {
    const run = await claimRunning(t)
    t.clock.advance(200)
    await t.append('b', cancelling)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c up to the millisecond before the cap an event cancels the run', async (t) => {
    const run = await claimRunning(t)
    t.clock.advance(199)
    await t.append('b', cancelling)
    assert.equal(await t.renew(run), 'cancel')
  })

  rule('L6c a committed run is not cancelled and not dissolved', async (t) => {
    const run = await claimRunning(t)
    assert.equal(await t.renew(run, { commit: true }), 'ok')
    await t.append('b', cancelling)
    assert.equal(await t.renew(run), 'ok')
    await t.settleOk(run, cancelled)
    assert.equal((await t.claimOne()).runId, run.runId)
  })

  rule('L6c the cap of a run is the least of its own events: those that have ended do not count', async (t) => {
    await t.append('a', words)
    await t.append('b', { quiet: 100, max: 60_000 })
    await t.settleOk(await t.claimOneAfter(100, { maxEvents: 1 }))
    const rest = await t.claimOne()
    assert.deepEqual(t.names(rest), ['b'])
    t.clock.advance(200)
    await t.append('c', { quiet: 100, max: 60_000, cancel: true })
    assert.equal(await t.renew(rest), 'cancel')
  })

  rule('L6c the cap of a run is the least of its own events: those that it leaves over do not count', async (t) => {
    await t.append('a', { quiet: 100, max: 60_000 })
    await t.append('b', words)
    const run = await t.claimOneAfter(100, { maxEvents: 1 })
    t.clock.advance(250)
    await t.append('c', { quiet: 100, max: 60_000, cancel: true })
    assert.equal(await t.renew(run), 'cancel')
  })

  rule('L6c events left over keep their caps: past the least of them nothing cancels', async (t) => {
    await t.append('a', { quiet: 100, max: 60_000 })
    await t.append('b', { quiet: 100, max: 60_000 })
    await t.append('c', words)
    await t.settleOk(await t.claimOneAfter(100, { maxEvents: 1 }))
    const rest = await t.claimOne()
    assert.deepEqual(t.names(rest), ['b', 'c'])
    t.clock.advance(199)
    await t.append('d', { quiet: 100, max: 60_000 })
    t.clock.advance(1)
    await t.append('e', cancelling)
    assert.equal(await t.renew(rest), 'ok')
  })

  rule('L6c each run of a backlog has the caps of its own events', async (t) => {
    for (let n = 0; n < 70; n++) {
      t.clock.advance(10)
      await t.append(`e${n}`, { quiet: 1_000, max: 1_000 })
    }
    t.clock.advance(310)
    for (let part = 0; part < 6; part++) {
      const run = await t.claimOne({ maxEvents: 10 })
      assert.deepEqual(t.names(run)[0], `e${part * 10}`)
      await t.settleOk(run)
    }
    // The cap of the first remaining event is 600 ms after that of the first event of all.
    const last = await t.claimOne({ maxEvents: 10 })
    t.clock.advance(599)
    await t.append('first', cancelling)
    assert.equal(await t.renew(last), 'cancel')
    await t.settleOk(last, cancelled)
    const same = await t.claimOneAfter(1)
    await t.append('second', cancelling)
    assert.equal(await t.renew(same), 'ok')
  })

  rule(
    'L6c L7 a run with take last has the cap of the first event it passed over, even after a cancellation',
    async (t) => {
      await t.append('a', words)
      await t.append('b', { quiet: 100, max: 60_000 })
      const run = await t.claimOneAfter(100, { take: 'last' })
      assert.deepEqual(t.names(run), ['b'])
      await t.append('c', { quiet: 100, max: 60_000, cancel: true })
      await t.settleOk(run, cancelled)
      const next = await t.claimOneAfter(100, { take: 'last' })
      assert.deepEqual(t.names(next), ['c'])
      t.clock.advance(100)
      await t.append('d', { quiet: 100, max: 60_000, cancel: true })
      assert.equal(await t.renew(next), 'ok')
    },
  )

  for (const [bound, full] of [
    ['maxEvents', { maxEvents: 3 }],
    ['maxBytes', { maxBytes: 300 }],
  ] as const) {
    rule(`L6c L3 the events of a cancelled run and the new ones reach ${bound}: the lane is due at once`, async (t) => {
      const sized = { ...words, max: 10_000, body: 'x'.repeat(100), ...full }
      await t.append('a', sized)
      const run = await t.claimOneAfter(100)
      await t.append('b', { ...sized, cancel: true })
      await t.append('c', { ...sized, cancel: true })
      await t.settleOk(run, cancelled)
      assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c'])
    })

    rule(`L6c L3 a run that is done all the same leaves a window that has not reached ${bound} open`, async (t) => {
      const sized = { ...words, max: 10_000, body: 'x'.repeat(100), ...full }
      await t.append('a', sized)
      const run = await t.claimOneAfter(100)
      await t.append('b', { ...sized, cancel: true })
      await t.append('c', { ...sized, cancel: true })
      await t.settleOk(run, done)
      assert.deepEqual(t.names(await t.claimOneAfter(100)), ['b', 'c'])
    })
  }

  rule('L6c a late commit returns cancel and commits nothing', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    assert.equal(await t.renew(run, { commit: true }), 'cancel')
    await t.settleOk(run, cancelled)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a', 'b'])
  })

  for (const outcome of [retry(10), snoozed(10), released]) {
    rule(`L6c after ${outcome.kind} a run is frozen: no event cancels it, nothing dissolves it`, async (t) => {
      const run = await claimRunning(t)
      await t.settleOk(run, outcome)
      t.clock.advance(10)
      const back = await t.claimOne()
      await t.append('b', cancelling)
      assert.equal(await t.renew(back), 'ok')
      await t.settleOk(back, cancelled)
      const third = await t.claimOne()
      assert.deepEqual([third.runId, t.names(third)], [run.runId, ['a']])
    })
  }

  rule('L6c an event during a retry wait does not cancel the next attempt', async (t) => {
    await t.settleOk(await claimRunning(t), retry(10))
    await t.append('b', cancelling)
    assert.equal(await t.renew(await t.claimOneAfter(10)), 'ok')
  })

  rule('L6c a lapse makes the request void: the run comes back whole, and frozen', async (t) => {
    await t.append('a', { quiet: 100, max: 1_000_000 })
    const run = await t.claimOneAfter(100)
    await t.append('b', { ...cancelling, max: 1_000_000 })
    t.expireLeases()
    const back = await t.claimOne()
    assert.deepEqual([back.runId, t.names(back)], [run.runId, ['a']])
    assert.equal(await t.renew(back), 'ok')
    await t.append('c', { ...cancelling, max: 1_000_000 })
    assert.equal(await t.renew(back), 'ok')
    await t.settleOk(back, cancelled)
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L6c cancelled without a request gives the run back: same id, same events, no try', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', words)
    await t.settleOk(run, cancelled)
    const back = await t.claimOne()
    assert.deepEqual([back.runId, t.names(back), back.tries], [run.runId, ['a'], 0])
  })

  rule('L6c a retry of a run that was asked to cancel keeps it whole', async (t) => {
    const run = await claimRunning(t)
    await t.append('b', cancelling)
    await t.settleOk(run, retry(50))
    const back = await t.claimOneAfter(50)
    assert.deepEqual([back.runId, t.names(back), back.tries], [run.runId, ['a'], 1])
    assert.equal(await t.renew(back), 'ok')
  })

  rule('L6c a cancelled run that had left events over is due at once', async (t) => {
    await t.appendEach(['a', 'b', 'c'], words)
    const run = await t.claimOneAfter(100, { maxEvents: 2 })
    await t.append('d', cancelling)
    await t.settleOk(run, cancelled)
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c', 'd'])
  })

  rule('L6c L3 events that are back count for maxEvents and maxBytes again', async (t) => {
    const sized = { ...words, max: 10_000, maxBytes: 300, body: 'x'.repeat(100) }
    for (const [key, more] of [
      ['bytes', {}],
      ['events', { maxBytes: 10_000, maxEvents: 3 }],
    ] as const) {
      await t.append(`${key} a`, { ...sized, ...more, key })
      const run = await t.claimOneAfter(100)
      await t.append(`${key} b`, { ...sized, ...more, key, cancel: true })
      await t.settleOk(run, cancelled)
      await t.assertNothingReady()
      await t.append(`${key} c`, { ...sized, ...more, key })
      assert.equal((await t.claimOne()).events.length, 3)
    }
  })

  rule('L6c a message every 3 s and answers of 5 s: cancelling ends at max, not never', async (t) => {
    const start = t.clock.now()
    let run: LeasedRun | undefined
    let since = 0
    let answered: number | undefined
    for (let second = 0; answered === undefined && second < 120; second++) {
      if (second % 3 === 0) await t.append(`m${second}`, { quiet: 1_000, max: 30_000, cancel: true })
      if (run !== undefined && (await t.renew(run)) === 'cancel') {
        await t.settleOk(run, cancelled)
        run = undefined
      }
      if (run !== undefined && second - since >= 5) {
        await t.settleOk(run, done)
        answered = t.clock.now() - start
      }
      const [claimed] = run === undefined ? await t.claim() : []
      if (claimed !== undefined) since = second
      run = claimed ?? run
      t.clock.advance(1_000)
    }
    assert.ok(answered !== undefined && answered <= 36_000, `answered after ${answered} ms`)
  })

  rule('L6c a replay never cancels a run', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.settleOk(await t.claimOne())
    const run = await claimRunning(t)
    await replayEvent(t, 'old')
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c a run of replays is never cancelled', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.settleOk(await t.claimOne())
    await replayEvent(t, 'old')
    const run = await t.claimOne()
    assert.equal(run.rank, 1)
    await t.append('b', cancelling)
    assert.equal(await t.renew(run), 'ok')
    assert.equal(await t.steer('k', 'cancel'), 'already')
  })

  rule('L6c a dead letter that runs again is never cancelled', async (t) => {
    await t.settleOk(await claimRunning(t), dead)
    await t.steerDeadLetter(assertSingle(await t.findAll('dead')).id, 'retry')
    const run = await t.claimOne()
    await t.append('b', cancelling)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c a dead letter queued while a run is cancelled runs next, and neither is stuck', async (t) => {
    await t.append('bad', words)
    const bad = await t.claimOneAfter(100)
    await t.settleOk(bad, dead)
    await t.append('a', words)
    const run = await t.claimOneAfter(100)
    await t.append('b', cancelling)
    assert.equal(await t.steerDeadLetter(bad.runId, 'retry'), 'ok')
    await t.settleOk(run, cancelled)
    const deadLetter = await t.claimOne()
    assert.deepEqual([deadLetter.runId, t.names(deadLetter)], [bad.runId, ['bad']])
    await t.settleOk(deadLetter)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a', 'b'])
  })
}
