// L16: a replayed event keeps its id and enters its lane behind the live ones, without window, dedupe or cancelling.
import assert from 'node:assert/strict'
import type { PlaceReply } from '../contract/index.ts'
import { keys, only, type Stage, type Suite } from './stage.ts'
import { dead, done, place, retry, type PlaceWords } from './vocabulary.ts'

async function replayed(
  t: Stage,
  name: string,
  id: string,
  words: PlaceWords = {},
): Promise<PlaceReply['results'][number]> {
  const items = [{ kind: 'replay', replay: id, event: t.id(name), places: [place(words)] }] as const
  return only((await t.store.place({ routes: t.routes, items })).results)
}

/** Events whose work is done. */
async function finished(t: Stage, ...names: readonly string[]): Promise<void> {
  for (const name of names) await t.append(name)
  await t.end(await t.next())
}

export const replay: Suite = (rule) => {
  rule('L16 a replayed event runs again under its own id, at rank 1 and at once, whatever the window', async (t) => {
    await finished(t, 'a')
    t.clock.advance(1_000)
    assert.equal(await replayed(t, 'a', 'r1', { quiet: 60_000 }), 'placed')
    const run = await t.next()
    assert.deepEqual([t.names(run), run.rank, run.letter], [['a'], 1, false])
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'a')
    await t.end(run)
    await t.nothing()
  })

  rule('L16 it is idempotent by the id of the replay, also when its work is done', async (t) => {
    await finished(t, 'a')
    assert.equal(await replayed(t, 'a', 'r1'), 'placed')
    assert.equal(await replayed(t, 'a', 'r1'), 'already')
    const run = await t.next()
    assert.deepEqual(t.names(run), ['a'])
    await t.end(run)
    assert.equal(await replayed(t, 'a', 'r1'), 'already')
    await t.nothing()
    assert.equal(await replayed(t, 'a', 'r2'), 'placed')
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L16 one replay takes many events, each once, in its order', async (t) => {
    await finished(t, 'a', 'b', 'c')
    const items = ['a', 'b', 'c'].map(
      (name) => ({ kind: 'replay', replay: 'r', event: t.id(name), places: [place()] }) as const,
    )
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['placed', 'placed', 'placed'])
    assert.deepEqual(t.names(await t.next()), ['a', 'b', 'c'])
  })

  rule('L16 an event that is not there is gone', async (t) => {
    const items = [{ kind: 'replay', replay: 'r', event: 'nobody', places: [place()] }] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['gone'])
    await t.nothing()
  })

  rule('L16 live events go first, and a run has one rank', async (t) => {
    await finished(t, 'old')
    await replayed(t, 'old', 'r')
    await t.append('new')
    const live = await t.next()
    assert.deepEqual([t.names(live), live.rank], [['new'], 0])
    await t.end(live)
    const behind = await t.next()
    assert.deepEqual([t.names(behind), behind.rank], [['old'], 1])
  })

  rule('L16 a replay does not wait for a window of live events that is still open', async (t) => {
    await finished(t, 'old')
    await t.append('new', { quiet: 1_000 })
    await replayed(t, 'old', 'r')
    const run = await t.next()
    assert.deepEqual(t.names(run), ['old'])
    await t.end(run)
    assert.deepEqual(t.names(await t.dueIn(1_000)), ['new'])
  })

  rule('L16 every ninth turn goes to a replay that waits', async (t) => {
    await finished(t, 'old')
    await replayed(t, 'old', 'r')
    const ranks: number[] = []
    for (let n = 0; n < 12; n++) {
      await t.append(`new ${n}`)
      const run = await t.next({ maxEvents: 1 })
      ranks.push(run.rank)
      await t.end(run)
    }
    assert.deepEqual(ranks, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
  })

  rule('L16 after its turn a replay waits for eight live turns again', async (t) => {
    await finished(t, 'old', 'older')
    await replayed(t, 'old', 'r')
    await replayed(t, 'older', 'r')
    const ranks: number[] = []
    for (let n = 0; n < 18; n++) {
      await t.append(`new ${n}`)
      const run = await t.next({ maxEvents: 1 })
      ranks.push(run.rank)
      await t.end(run)
    }
    assert.deepEqual(
      ranks.map((rank, turn) => (rank === 1 ? turn : -1)).filter((turn) => turn >= 0),
      [8, 17],
    )
  })

  rule('L16 a replay moves no window of live events, and fills no cap of theirs', async (t) => {
    await finished(t, 'old')
    await t.append('a', { quiet: 100, maxEvents: 2 })
    await replayed(t, 'old', 'r', { quiet: 0, maxEvents: 2 })
    const run = await t.next()
    assert.equal(run.rank, 1)
    await t.end(run)
    assert.deepEqual(t.names(await t.dueIn(100)), ['a'])
  })

  rule('L16 live events do not join a run of replays, nor replays one of live events', async (t) => {
    await finished(t, 'old')
    await t.append('a')
    const live = await t.next()
    await replayed(t, 'old', 'r')
    await t.end(live, retry(0))
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L16 a replay never runs beside the live run of its lane', async (t) => {
    await finished(t, 'old')
    await t.append('a')
    const live = await t.next()
    await replayed(t, 'old', 'r')
    await t.nothing()
    await t.end(live)
    assert.deepEqual(t.names(await t.next()), ['old'])
  })

  rule('L16 a run of replays that fails keeps its id, events and rank', async (t) => {
    await finished(t, 'old')
    await replayed(t, 'old', 'r')
    const run = await t.next()
    await t.append('new')
    await t.end(run, retry(100))
    const back = await t.dueIn(100)
    assert.deepEqual([back.run, t.names(back), back.rank, back.tries], [run.run, ['old'], 1, 1])
    await t.end(back, dead)
    assert.deepEqual(t.names((await t.letter(run.run))?.events ?? []), ['old'])
    assert.deepEqual(t.names(await t.next()), ['new'])
  })

  rule('L16 replays in one lane do not hold up other lanes that were ready before', async (t) => {
    await finished(t, 'old')
    await t.append('other', { key: 'other' })
    t.clock.advance(10)
    await replayed(t, 'old', 'r')
    assert.deepEqual(keys(await t.claim()), ['other', 'k'])
  })

  rule('L16 what a replay left over is due at the end of its run', async (t) => {
    await finished(t, 'a', 'b')
    await replayed(t, 'a', 'r')
    await replayed(t, 'b', 'r')
    const run = await t.next({ maxEvents: 1 })
    assert.deepEqual(t.names(run), ['a'])
    await t.end(run, done)
    assert.deepEqual(t.names(await t.next({ maxEvents: 1 })), ['b'])
  })

  rule('L16 a replay into a lane the event has never been in is placed there', async (t) => {
    await finished(t, 'a')
    assert.equal(await replayed(t, 'a', 'r', { key: 'new lane' }), 'placed')
    assert.equal((await t.next()).key, 'new lane')
  })
}
