// L6c: a new event may ask the run in the making to give up; only the run's own settlement decides, within bounds.
import assert from 'node:assert/strict'
import type { Lease } from '../contract/index.ts'
import { only, type Stage, type Suite } from './stage.ts'
import { again, cancelled, dead, done, LEASE, place, released, retry } from './vocabulary.ts'

const words = { quiet: 100, max: 300 } as const
const asking = { ...words, cancel: true } as const

/** A run of `a`, claimed 100 ms after its arrival; its cap is 200 ms away. */
async function running(t: Stage): Promise<Lease> {
  await t.append('a', words)
  return t.dueIn(100)
}

async function replay(t: Stage, name: string): Promise<void> {
  const items = [{ kind: 'replay', replay: `r-${name}`, event: t.id(name), places: [place(asking)] }] as const
  assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['placed'])
}

export const cancel: Suite = (rule) => {
  rule(
    'L6c an event that asks for it makes renewals answer cancel; the lease is lengthened all the same',
    async (t) => {
      const run = await running(t)
      await t.append('b', asking)
      t.clock.advance(LEASE - 1)
      assert.equal(await t.renew(run), 'cancel')
      t.clock.advance(LEASE - 1)
      assert.equal(await t.renew(run), 'cancel')
    },
  )

  rule('L6c an event that does not ask for it leaves the run alone', async (t) => {
    const run = await running(t)
    await t.append('b', words)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c cancelled puts the events back before the new ones, in one window, and uses no attempt', async (t) => {
    const run = await running(t)
    t.clock.advance(20)
    await t.append('b', asking)
    t.clock.advance(30)
    await t.end(run, cancelled)
    const next = await t.dueIn(70)
    assert.deepEqual(t.names(next), ['a', 'b'])
    assert.deepEqual([next.tries, next.lapses, next.parent], [0, 0, ''])
  })

  rule('L6c the id of a cancelled run is retired, and its token too', async (t) => {
    const run = await running(t)
    await t.append('b', asking)
    await t.end(run, cancelled)
    assert.equal(await t.settle(run, done), 'lost')
    assert.equal((await t.store.get({ kind: 'runs', id: run.run })).item?.kind, 'cancelled')
    const next = await t.dueIn(100)
    assert.notEqual(next.run, run.run)
    assert.notEqual(next.token, run.token)
  })

  rule('L6c the window of a cancelled run ends at its earliest cap, however late the new events are', async (t) => {
    const run = await running(t)
    t.clock.advance(150)
    await t.append('b', asking)
    t.clock.advance(10)
    await t.end(run, cancelled)
    assert.deepEqual(t.names(await t.dueIn(40)), ['a', 'b'])
  })

  rule('L6c a run that gives up after its cap is due at once, and not before lanes that were ready', async (t) => {
    const run = await running(t)
    await t.append('b', asking)
    await t.append('other', { key: 'other', quiet: 400, max: 4_000 })
    t.clock.advance(500)
    await t.end(run, cancelled)
    const [first, second] = await t.claim()
    assert.ok(first && second)
    assert.deepEqual([first.key, t.names(second)], ['other', ['a', 'b']])
  })

  rule('L6c a run asked to cancel may still be done: that stands, and the new events wait their window', async (t) => {
    const run = await running(t)
    await t.append('b', asking)
    await t.end(run, done)
    assert.deepEqual(t.names(await t.dueIn(100)), ['b'])
  })

  rule('L6c once the earliest cap has passed nothing asks any more', async (t) => {
    const run = await running(t)
    t.clock.advance(200)
    await t.append('b', asking)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c up to the millisecond before the cap an event does ask', async (t) => {
    const run = await running(t)
    t.clock.advance(199)
    await t.append('b', asking)
    assert.equal(await t.renew(run), 'cancel')
  })

  rule('L6c a run that has committed is not asked, and not dissolved', async (t) => {
    const run = await running(t)
    assert.equal(await t.renew(run, { commit: true }), 'ok')
    await t.append('b', asking)
    assert.equal(await t.renew(run), 'ok')
    await t.end(run, cancelled)
    assert.equal((await t.next()).run, run.run)
  })

  rule('L6c what a run leaves over keeps the cap of that run', async (t) => {
    await t.append('a', words)
    await t.append('b', { quiet: 100, max: 60_000 })
    await t.end(await t.dueIn(100, { maxEvents: 1 }))
    const rest = await t.next()
    assert.deepEqual(t.names(rest), ['b'])
    t.clock.advance(200)
    await t.append('c', { quiet: 100, max: 60_000, cancel: true })
    assert.equal(await t.renew(rest), 'ok')
  })

  rule('L6c a commit that comes too late answers cancel and commits nothing', async (t) => {
    const run = await running(t)
    await t.append('b', asking)
    assert.equal(await t.renew(run, { commit: true }), 'cancel')
    await t.end(run, cancelled)
    assert.deepEqual(t.names(await t.dueIn(100)), ['a', 'b'])
  })

  for (const outcome of [retry(10), again(10), released]) {
    rule(`L6c after ${outcome.kind} a run is frozen: no event asks, nothing dissolves it`, async (t) => {
      const run = await running(t)
      await t.end(run, outcome)
      t.clock.advance(10)
      const back = await t.next()
      await t.append('b', asking)
      assert.equal(await t.renew(back), 'ok')
      await t.end(back, cancelled)
      const third = await t.next()
      assert.deepEqual([third.run, t.names(third)], [run.run, ['a']])
    })
  }

  rule('L6c an event during a retry wait asks nothing of the next attempt', async (t) => {
    await t.end(await running(t), retry(10))
    await t.append('b', asking)
    assert.equal(await t.renew(await t.dueIn(10)), 'ok')
  })

  rule('L6c a lapse makes the request void: the run comes back whole, and frozen', async (t) => {
    await t.append('a', { quiet: 100, max: 1_000_000 })
    const run = await t.dueIn(100)
    await t.append('b', { ...asking, max: 1_000_000 })
    t.lapse()
    const back = await t.next()
    assert.deepEqual([back.run, t.names(back)], [run.run, ['a']])
    assert.equal(await t.renew(back), 'ok')
    await t.append('c', { ...asking, max: 1_000_000 })
    assert.equal(await t.renew(back), 'ok')
    await t.end(back, cancelled)
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L6c cancelled without a request gives the run back: same id, same events, no try', async (t) => {
    const run = await running(t)
    await t.append('b', words)
    await t.end(run, cancelled)
    const back = await t.next()
    assert.deepEqual([back.run, t.names(back), back.tries], [run.run, ['a'], 0])
  })

  rule('L6c a retry of a run that was asked to cancel keeps it whole', async (t) => {
    const run = await running(t)
    await t.append('b', asking)
    await t.end(run, retry(50))
    const back = await t.dueIn(50)
    assert.deepEqual([back.run, t.names(back), back.tries], [run.run, ['a'], 1])
    assert.equal(await t.renew(back), 'ok')
  })

  rule('L6c a cancelled run that had left events over is due at once', async (t) => {
    await t.appendEach(['a', 'b', 'c'], words)
    const run = await t.dueIn(100, { maxEvents: 2 })
    await t.append('d', asking)
    await t.end(run, cancelled)
    assert.deepEqual(t.names(await t.next()), ['a', 'b', 'c', 'd'])
  })

  rule('L6c L3 events that are back count for maxEvents and maxBytes again', async (t) => {
    const sized = { ...words, max: 10_000, maxBytes: 300, body: 'x'.repeat(100) }
    for (const [key, more] of [
      ['bytes', {}],
      ['events', { maxBytes: 10_000, maxEvents: 3 }],
    ] as const) {
      await t.append(`${key} a`, { ...sized, ...more, key })
      const run = await t.dueIn(100)
      await t.append(`${key} b`, { ...sized, ...more, key, cancel: true })
      await t.end(run, cancelled)
      await t.nothing()
      await t.append(`${key} c`, { ...sized, ...more, key })
      assert.equal((await t.next()).events.length, 3)
    }
  })

  rule('L6c a message every 3 s and answers of 5 s: cancelling ends at max, not never', async (t) => {
    const start = t.clock.now()
    let run: Lease | undefined
    let since = 0
    let answered: number | undefined
    for (let second = 0; answered === undefined && second < 120; second++) {
      if (second % 3 === 0) await t.append(`m${second}`, { quiet: 1_000, max: 30_000, cancel: true })
      if (run !== undefined && (await t.renew(run)) === 'cancel') {
        await t.end(run, cancelled)
        run = undefined
      }
      if (run !== undefined && second - since >= 5) {
        await t.end(run, done)
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
    await t.end(await t.next())
    const run = await running(t)
    await replay(t, 'old')
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c a run of replays is never cancelled', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.end(await t.next())
    await replay(t, 'old')
    const run = await t.next()
    assert.equal(run.rank, 1)
    await t.append('b', asking)
    assert.equal(await t.renew(run), 'ok')
    assert.equal(await t.steer('k', 'cancel'), 'already')
  })

  rule('L6c a dead letter that runs again is never cancelled', async (t) => {
    await t.end(await running(t), dead)
    await t.steerDead(only(await t.all('dead')).id, 'retry')
    const run = await t.next()
    await t.append('b', asking)
    assert.equal(await t.renew(run), 'ok')
  })

  rule('L6c a dead letter queued while a run gives up runs next, and neither is stuck', async (t) => {
    await t.append('bad', words)
    const bad = await t.dueIn(100)
    await t.end(bad, dead)
    await t.append('a', words)
    const run = await t.dueIn(100)
    await t.append('b', asking)
    assert.equal(await t.steerDead(bad.run, 'retry'), 'ok')
    await t.end(run, cancelled)
    const letter = await t.next()
    assert.deepEqual([letter.run, t.names(letter)], [bad.run, ['bad']])
    await t.end(letter)
    assert.deepEqual(t.names(await t.dueIn(100)), ['a', 'b'])
  })
}
