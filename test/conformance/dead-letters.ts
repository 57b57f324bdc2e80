// L9: a dead letter keeps everything that a retry by hand needs. It is retried once, in its lane, and never beside a live run.
import assert from 'node:assert/strict'
import type { LeasedRun } from '../../src/store/contract/index.ts'
import type { RunOutcome } from '../../src/model/settle.ts'
import { getKeys, assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { deadAndBlocking, createClaimRequest, dead, done, dropped, createPlacement, retry } from './builders.ts'

/** The run of one event that died. It has the same id as the dead letter. */
async function makeDeadLetter(t: ConformanceStage, name: string, outcome: RunOutcome = dead): Promise<LeasedRun> {
  await t.append(name)
  const run = await t.claimOne()
  await t.settleOk(run, outcome)
  return run
}

export const deadLetters: Suite = (rule) => {
  rule('L9 a dead letter has its events, its reason and when it died, and the lane goes on', async (t) => {
    await t.appendEach(['a', 'b'], { tenant: 'acme' })
    const run = await t.claimOne()
    await t.append('c')
    t.clock.advance(500)
    await t.settleOk(run, dead)
    const deadLetter = await t.getDeadLetter(run.runId)
    assert.ok(deadLetter)
    const { state, reason, at, key, flow, tenant, lane, blocks } = deadLetter
    assert.deepEqual([state, reason, at, blocks], ['dead', 'broken', t.clock.now(), false])
    assert.deepEqual([key, flow, tenant, lane, t.names(deadLetter.events)], ['k', 'flow', 'acme', run.lane, ['a', 'b']])
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L9 block: the lane waits for that dead letter, and other lanes do not', async (t) => {
    const run = await makeDeadLetter(t, 'a', deadAndBlocking)
    await t.append('b')
    await t.append('other', { key: 'other' })
    t.clock.advance(86_400_000)
    assert.deepEqual(getKeys(await t.claim()), ['other'])
    assert.equal((await t.getDeadLetter(run.runId))?.blocks, true)
  })

  rule('L9 block: replays wait too', async (t) => {
    await makeDeadLetter(t, 'a', deadAndBlocking)
    await t.append('old', { key: 'elsewhere' })
    await t.settleOk(await t.claimOne())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), placements: [createPlacement()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.assertNothingReady()
  })

  rule('L9 block waits for that dead letter alone, not for others of its lane', async (t) => {
    const plain = await makeDeadLetter(t, 'a')
    const blocker = await makeDeadLetter(t, 'b', deadAndBlocking)
    await t.append('c')
    assert.equal(await t.steerDeadLetter(plain.runId, 'drop'), 'ok')
    await t.assertNothingReady()
    assert.equal(await t.steerDeadLetter(blocker.runId, 'drop'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L9 a retry moves a dead letter from dead to queued, once', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'ok')
    assert.equal((await t.getDeadLetter(run.runId))?.state, 'queued')
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'already')
    const back = await t.claimOne()
    assert.equal((await t.getDeadLetter(run.runId))?.state, 'running')
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'already')
    assert.equal(await t.steerDeadLetter(run.runId, 'drop'), 'running')
    await t.settleOk(back)
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'missing')
    await t.assertNothingReady()
  })

  rule('L9 L21 of two queued dead letters, one after a step back, the first runs by the earlier time', async (t) => {
    const [one, two] = [await makeDeadLetter(t, 'a'), await makeDeadLetter(t, 'b')]
    await t.steerDeadLetter(one.runId, 'retry')
    t.clock.set(t.clock.now() - 50)
    await t.steerDeadLetter(two.runId, 'retry')
    assert.equal((await t.claimOne()).runId, one.runId)
  })

  rule('L4 L9 dropping the first of two queued dead letters keeps the place of the lane', async (t) => {
    const [one, two] = [await makeDeadLetter(t, 'a'), await makeDeadLetter(t, 'b')]
    await t.steerDeadLetter(one.runId, 'retry')
    t.clock.advance(10)
    await t.append('c', { key: 'other' })
    t.clock.advance(10)
    await t.steerDeadLetter(two.runId, 'retry')
    await t.steerDeadLetter(one.runId, 'drop')
    assert.deepEqual(getKeys(await t.claim()), ['k', 'other'])
  })

  rule(
    'L9 L21 of two queued dead letters, the second after a step back is dropped: the lane keeps that time',
    async (t) => {
      const [one, two] = [await makeDeadLetter(t, 'a'), await makeDeadLetter(t, 'b')]
      await t.steerDeadLetter(one.runId, 'retry')
      t.clock.set(t.clock.now() - 50)
      await t.steerDeadLetter(two.runId, 'retry')
      await t.steerDeadLetter(two.runId, 'drop')
      assert.equal((await t.claimOne()).runId, one.runId)
    },
  )

  rule('L9 a retry runs before waiting events, with the same id and events and zero tries', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(0))
    t.expireLeases()
    await t.settleOk(await t.claimOne(), dead)
    await t.append('b')
    await t.steerDeadLetter(run.runId, 'retry')
    const back = await t.claimOne()
    assert.deepEqual(
      [back.runId, t.names(back), back.isDeadLetter, back.tries, back.lapses],
      [run.runId, ['a'], true, 0, 0],
    )
    assert.ok(back.events[0]?.body)
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L9 several queued dead letters run in the order in which they died', async (t) => {
    const first = await makeDeadLetter(t, 'a')
    t.clock.advance(10)
    const second = await makeDeadLetter(t, 'b')
    await t.steerDeadLetter(second.runId, 'retry')
    await t.steerDeadLetter(first.runId, 'retry')
    const runs: string[] = []
    for (let n = 0; n < 2; n++) {
      const run = await t.claimOne()
      runs.push(...t.names(run))
      await t.settleOk(run)
    }
    assert.deepEqual(runs, ['a', 'b'])
  })

  rule('L9 a retry in a blocked lane runs that dead letter, and then the lane continues', async (t) => {
    const run = await makeDeadLetter(t, 'a', deadAndBlocking)
    await t.append('b')
    await t.steerDeadLetter(run.runId, 'retry')
    const back = await t.claimOne()
    assert.equal(back.runId, run.runId)
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  for (const [what, outcome] of [
    ['live', undefined],
    ['waiting for its next attempt', retry(1_000)],
  ] as const) {
    rule(`L9 a dead letter does not run beside a run that is ${what}, but after it`, async (t) => {
      const deadLetter = await makeDeadLetter(t, 'a')
      await t.append('b')
      const run = await t.claimOne()
      if (outcome !== undefined) await t.settleOk(run, outcome)
      assert.equal(await t.steerDeadLetter(deadLetter.runId, 'retry'), 'ok')
      await t.assertNothingReady()
      await t.append('c')
      const live = outcome === undefined ? run : await t.claimOneAfter(1_000)
      assert.deepEqual(t.names(live), ['b'])
      await t.settleOk(live)
      assert.deepEqual(t.names(await t.claimOne()), ['a'])
    })
  }

  rule('L9 a dead letter queued behind a run that dies and blocks still runs', async (t) => {
    const deadLetter = await makeDeadLetter(t, 'a')
    await t.append('b')
    const run = await t.claimOne()
    await t.steerDeadLetter(deadLetter.runId, 'retry')
    await t.append('c')
    await t.settleOk(run, deadAndBlocking)
    const back = await t.claimOne()
    assert.equal(back.runId, deadLetter.runId)
    await t.settleOk(back)
    await t.assertNothingReady()
    await t.steerDeadLetter(run.runId, 'drop')
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  for (const outcome of [done, dropped]) {
    rule(`L9 a dead letter that runs and is ${outcome.kind} is gone`, async (t) => {
      const run = await makeDeadLetter(t, 'a', deadAndBlocking)
      await t.steerDeadLetter(run.runId, 'retry')
      await t.settleOk(await t.claimOne(), outcome)
      assert.equal(await t.getDeadLetter(run.runId), undefined)
      assert.equal((await t.store.stats()).deadLetters, 0)
      await t.append('b')
      assert.deepEqual(t.names(await t.claimOne()), ['b'])
    })
  }

  rule('L9 dead again: the same dead letter with new attempts, and it can be retried again', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne(), dead, { attempt: { at: t.clock.now(), ms: 1, error: 'once more' } })
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual(
      [deadLetter.id, deadLetter.state, deadLetter.attempts.at(-1)?.error],
      [run.runId, 'dead', 'once more'],
    )
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L9 a dead letter that blocked its lane and dies again still blocks it', async (t) => {
    const run = await makeDeadLetter(t, 'a', deadAndBlocking)
    await t.append('b')
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne(), dead)
    await t.assertNothingReady()
    await t.steerDeadLetter(run.runId, 'drop')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L9 a dead letter that runs fails and lapses as any run does', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    await t.steerDeadLetter(run.runId, 'retry')
    await t.settleOk(await t.claimOne(), retry(100))
    const second = await t.claimOneAfter(100)
    assert.deepEqual([second.runId, second.tries, second.isDeadLetter], [run.runId, 1, true])
    t.expireLeases()
    const third = await t.claimOne()
    assert.deepEqual([third.runId, third.lapses, t.names(third)], [run.runId, 1, ['a']])
  })

  rule('L9 drop ends the dead letter and frees the lane; unblock only frees the lane', async (t) => {
    const first = await makeDeadLetter(t, 'a', deadAndBlocking)
    await t.append('b')
    assert.equal(await t.steerDeadLetter(first.runId, 'drop'), 'ok')
    assert.equal(await t.getDeadLetter(first.runId), undefined)
    const second = await t.claimOne()
    await t.settleOk(second, deadAndBlocking)
    await t.append('c')
    assert.equal(await t.steerDeadLetter(second.runId, 'unblock'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
    const kept = await t.getDeadLetter(second.runId)
    assert.deepEqual([kept?.state, kept?.blocks], ['dead', false])
  })

  rule('L9 a queued dead letter that is dropped does not run', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    await t.steerDeadLetter(run.runId, 'retry')
    assert.equal(await t.steerDeadLetter(run.runId, 'drop'), 'ok')
    await t.append('b')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L9 a dead letter can be retried after the row of its lane is gone', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    t.clock.advance(86_400_000)
    await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'ok')
    const back = await t.claimOne()
    assert.deepEqual([back.runId, back.lane, back.key, t.names(back)], [run.runId, run.lane, 'k', ['a']])
    await t.settleOk(back)
    await t.assertNothingReady()
  })

  rule('L9 an unknown dead letter is missing', async (t) => {
    assert.equal(await t.steerDeadLetter('nobody', 'retry'), 'missing')
    assert.equal(await t.steerDeadLetter('nobody', 'drop'), 'missing')
    assert.equal(await t.steerDeadLetter('nobody', 'unblock'), 'missing')
  })

  rule('L9 a queued dead letter is due when it was queued, in the order of all lanes', async (t) => {
    const run = await makeDeadLetter(t, 'a')
    await t.append('early', { key: 'early' })
    t.clock.advance(10)
    await t.steerDeadLetter(run.runId, 'retry')
    t.clock.advance(10)
    await t.append('late', { key: 'late' })
    assert.deepEqual(getKeys((await t.settleAndClaim({ claim: [createClaimRequest()] })).claimed), [
      'early',
      'k',
      'late',
    ])
  })

  rule(
    'L9 of two queued dead letters one is dropped and the other still runs; a second unblock returns already',
    async (t) => {
      const first = await makeDeadLetter(t, 'a')
      const second = await makeDeadLetter(t, 'b')
      await t.steerDeadLetter(first.runId, 'retry')
      await t.steerDeadLetter(second.runId, 'retry')
      await t.steerDeadLetter(first.runId, 'drop')
      const back = await t.claimOne()
      assert.equal(back.runId, second.runId)
      await t.settleOk(back, dead)
      assert.equal(await t.steerDeadLetter(second.runId, 'unblock'), 'already')
    },
  )
}
