// L16: a replayed event keeps its id and enters its lane behind the live events, without window, dedupe or cancellation.
import assert from 'node:assert/strict'
import type { PlaceReply } from '../../src/store/contract/index.ts'
import { getKeys, assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { dead, done, createPlacement, retry, type PlacementOverrides } from './builders.ts'

async function replayEvents(
  t: ConformanceStage,
  name: string,
  id: string,
  words: PlacementOverrides = {},
): Promise<PlaceReply['results'][number]> {
  const items = [{ kind: 'replay', replay: id, event: t.id(name), placements: [createPlacement(words)] }] as const
  return assertSingle((await t.store.place({ routes: t.routes, items })).results)
}

/** Events whose work is done. */
async function finishEvents(t: ConformanceStage, ...names: readonly string[]): Promise<void> {
  for (const name of names) await t.append(name)
  await t.settleOk(await t.claimOne())
}

export const replay: Suite = (rule) => {
  rule('L16 a replayed event runs again under its own id, at rank 1, at once and without window', async (t) => {
    await finishEvents(t, 'a')
    t.clock.advance(1_000)
    assert.equal(await replayEvents(t, 'a', 'r1', { quiet: 60_000 }), 'placed')
    const run = await t.claimOne()
    assert.deepEqual([t.names(run), run.rank, run.isDeadLetter], [['a'], 1, false])
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'a')
    await t.settleOk(run)
    await t.assertNothingReady()
  })

  rule('L16 a replay is idempotent by its id, even after its work is done', async (t) => {
    await finishEvents(t, 'a')
    assert.equal(await replayEvents(t, 'a', 'r1'), 'placed')
    assert.equal(await replayEvents(t, 'a', 'r1'), 'already')
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['a'])
    await t.settleOk(run)
    assert.equal(await replayEvents(t, 'a', 'r1'), 'already')
    await t.assertNothingReady()
    assert.equal(await replayEvents(t, 'a', 'r2'), 'placed')
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L16 one replay takes many events, each once, in its order', async (t) => {
    await finishEvents(t, 'a', 'b', 'c')
    const items = ['a', 'b', 'c'].map(
      (name) => ({ kind: 'replay', replay: 'r', event: t.id(name), placements: [createPlacement()] }) as const,
    )
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['placed', 'placed', 'placed'])
    assert.deepEqual(t.names(await t.claimOne()), ['a', 'b', 'c'])
  })

  rule('L16 a replay of a missing event returns gone', async (t) => {
    const items = [{ kind: 'replay', replay: 'r', event: 'nobody', placements: [createPlacement()] }] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['gone'])
    await t.assertNothingReady()
  })

  rule('L16 live events go first, and a run has one rank', async (t) => {
    await finishEvents(t, 'old')
    await replayEvents(t, 'old', 'r')
    await t.append('new')
    const live = await t.claimOne()
    assert.deepEqual([t.names(live), live.rank], [['new'], 0])
    await t.settleOk(live)
    const behind = await t.claimOne()
    assert.deepEqual([t.names(behind), behind.rank], [['old'], 1])
  })

  rule('L16 a replay does not wait for a window of live events that is still open', async (t) => {
    await finishEvents(t, 'old')
    await t.append('new', { quiet: 1_000 })
    await replayEvents(t, 'old', 'r')
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['old'])
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOneAfter(1_000)), ['new'])
  })

  rule('L16 every ninth claim takes a waiting replay', async (t) => {
    await finishEvents(t, 'old')
    await replayEvents(t, 'old', 'r')
    const ranks: number[] = []
    for (let n = 0; n < 12; n++) {
      await t.append(`new ${n}`)
      const run = await t.claimOne({ maxEvents: 1 })
      ranks.push(run.rank)
      await t.settleOk(run)
    }
    assert.deepEqual(ranks, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
  })

  rule('L16 after a claim of replays the next eight claims take live events', async (t) => {
    await finishEvents(t, 'old', 'older')
    await replayEvents(t, 'old', 'r')
    await replayEvents(t, 'older', 'r')
    const ranks: number[] = []
    for (let n = 0; n < 18; n++) {
      await t.append(`new ${n}`)
      const run = await t.claimOne({ maxEvents: 1 })
      ranks.push(run.rank)
      await t.settleOk(run)
    }
    assert.deepEqual(
      ranks.map((rank, turn) => (rank === 1 ? turn : -1)).filter((turn) => turn >= 0),
      [8, 17],
    )
  })

  rule('L16 a replay moves no window of live events, and fills no cap of theirs', async (t) => {
    await finishEvents(t, 'old')
    await t.append('a', { quiet: 100, maxEvents: 2 })
    await replayEvents(t, 'old', 'r', { quiet: 0, maxEvents: 2 })
    const run = await t.claimOne()
    assert.equal(run.rank, 1)
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOneAfter(100)), ['a'])
  })

  rule('L16 live events do not join a run of replays, nor replays one of live events', async (t) => {
    await finishEvents(t, 'old')
    await t.append('a')
    const live = await t.claimOne()
    await replayEvents(t, 'old', 'r')
    await t.settleOk(live, retry(0))
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L16 a replay never runs beside the live run of its lane', async (t) => {
    await finishEvents(t, 'old')
    await t.append('a')
    const live = await t.claimOne()
    await replayEvents(t, 'old', 'r')
    await t.assertNothingReady()
    await t.settleOk(live)
    assert.deepEqual(t.names(await t.claimOne()), ['old'])
  })

  rule('L16 a run of replays that fails keeps its id, events and rank', async (t) => {
    await finishEvents(t, 'old')
    await replayEvents(t, 'old', 'r')
    const run = await t.claimOne()
    await t.append('new')
    await t.settleOk(run, retry(100))
    const back = await t.claimOneAfter(100)
    assert.deepEqual([back.runId, t.names(back), back.rank, back.tries], [run.runId, ['old'], 1, 1])
    await t.settleOk(back, dead)
    assert.deepEqual(t.names((await t.getDeadLetter(run.runId))?.events ?? []), ['old'])
    assert.deepEqual(t.names(await t.claimOne()), ['new'])
  })

  rule('L16 replays in one lane do not delay other lanes that were ready before', async (t) => {
    await finishEvents(t, 'old')
    await t.append('other', { key: 'other' })
    t.clock.advance(10)
    await replayEvents(t, 'old', 'r')
    assert.deepEqual(getKeys(await t.claim()), ['other', 'k'])
  })

  rule('L16 replays left over are due at the end of the run', async (t) => {
    await finishEvents(t, 'a', 'b')
    await replayEvents(t, 'a', 'r')
    await replayEvents(t, 'b', 'r')
    const run = await t.claimOne({ maxEvents: 1 })
    assert.deepEqual(t.names(run), ['a'])
    await t.settleOk(run, done)
    assert.deepEqual(t.names(await t.claimOne({ maxEvents: 1 })), ['b'])
  })

  rule(
    'L16 a run has the events of one replay and names it, also after a partial outcome and as a dead letter',
    async (t) => {
      await finishEvents(t, 'a', 'b', 'c')
      for (const [name, id] of [
        ['a', 'r1'],
        ['b', 'r1'],
        ['c', 'r2'],
        ['a', 'r2'],
      ] as const)
        await replayEvents(t, name, id)
      const first = await t.claimOne()
      assert.deepEqual([t.names(first), first.replay], [['a', 'b'], 'r1'])
      const failed = { reason: 'no', block: false, after: 0 } as const
      await t.settleOk(first, { kind: 'partial', retry: [t.id('a')], dead: [t.id('b')], ...failed })
      const rest = await t.claimOne()
      assert.deepEqual([t.names(rest), rest.replay], [['a'], 'r1'])
      await t.settleOk(rest)
      const second = await t.claimOne()
      assert.deepEqual([t.names(second), second.replay], [['c', 'a'], 'r2'])
      await t.settleOk(second)
      const { items } = await t.store.find({ kind: 'dead', filter: {}, cursor: '', n: 10 })
      await t.store.steer({ what: 'dead', ids: items.map(({ id }) => id), act: 'retry' })
      const deadLetter = await t.claimOne()
      assert.deepEqual([t.names(deadLetter), deadLetter.replay, deadLetter.isDeadLetter], [['b'], 'r1', true])
      await t.settleOk(deadLetter)
      await t.append('live')
      assert.equal((await t.claimOne()).replay, '')
    },
  )

  rule('L16 with once, a replay places no event in a lane in which it has been', async (t) => {
    await finishEvents(t, 'a')
    const place = async (...keys: readonly string[]): Promise<PlaceReply['results'][number]> => {
      const placements = keys.map((key) => createPlacement({ key }))
      const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), placements, once: true }] as const
      return assertSingle((await t.store.place({ routes: t.routes, items })).results)
    }
    assert.equal(await place('k'), 'already')
    await t.assertNothingReady()
    assert.equal(await place('k', 'other'), 'placed')
    assert.equal(await place('k', 'other'), 'already')
    assert.deepEqual(getKeys(await t.claim()), ['other'])
  })

  rule('L16 a replay into a lane the event has never been in is placed there', async (t) => {
    await finishEvents(t, 'a')
    assert.equal(await replayEvents(t, 'a', 'r', { key: 'new lane' }), 'placed')
    assert.equal((await t.claimOne()).key, 'new lane')
  })
}
