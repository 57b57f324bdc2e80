// L8: a failed run keeps its id and its events until it ends. An accepted part ends, and the rest is a new run.
import assert from 'node:assert/strict'
import { getKeys, assertSingle, type Suite } from './stage.ts'
import { snoozed, createClaimRequest, dead, done, dropped, releasedAfter, partial, retry, SECOND } from './builders.ts'

export const failure: Suite = (rule) => {
  rule('L8 retries keep the id and the events, count tries, and nothing joins them', async (t) => {
    await t.appendEach(['a', 'b'])
    let run = await t.claimOne()
    const first = run.runId
    for (let tries = 1; tries <= 3; tries++) {
      await t.settleOk(run, retry(100))
      await t.append(`newcomer ${tries}`)
      run = await t.claimOneAfter(100)
      assert.deepEqual([run.runId, t.names(run), run.tries, run.lapses], [first, ['a', 'b'], tries, 0])
    }
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer 1', 'newcomer 2', 'newcomer 3'])
  })

  rule('L8 a delay is kept to the millisecond, from seconds to a day', async (t) => {
    await t.append('a')
    let run = await t.claimOne()
    for (const after of [1, 250, 5 * SECOND, 86_400_000]) {
      await t.settleOk(run, retry(after))
      run = await t.claimOneAfter(after)
    }
    assert.equal(run.tries, 4)
  })

  rule('L8 a run knows since when it fails: from its first failure, not from its first claim', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), releasedAfter(100))
    const fresh = await t.claimOneAfter(100)
    assert.equal(fresh.failingSince, 0)
    const since = t.clock.now()
    await t.settleOk(fresh, retry(50))
    const failed = await t.claimOneAfter(50)
    assert.equal(failed.failingSince, since)
    await t.settleOk(failed, partial({ retry: [t.id('b')], after: 70 }))
    const rest = await t.claimOneAfter(70)
    assert.deepEqual([rest.tries, rest.failingSince], [2, since])
    await t.settleOk(rest, dead)
    await t.steerDeadLetter(rest.runId, 'retry')
    assert.equal((await t.claimOne()).failingSince, 0)
  })

  rule('L8 while a run waits for its next attempt other lanes continue', async (t) => {
    await t.append('a', { key: 'a' })
    await t.settleOk(await t.claimOne(), retry(60_000))
    await t.append('b', { key: 'b' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1 })), ['b'])
  })

  rule('L8 attempts are kept and shown with the ending of the run', async (t) => {
    await t.append('a')
    const attempt = (n: number): { at: number; ms: number; error: string } => ({
      at: t.clock.now(),
      ms: n,
      error: `e${n}`,
    })
    const first = await t.claimOne()
    await t.settleOk(first, retry(10), { attempt: attempt(1) })
    await t.settleOk(await t.claimOneAfter(10), dead, { attempt: attempt(2) })
    const deadLetter = await t.getDeadLetter(first.runId)
    assert.deepEqual(
      deadLetter?.attempts.map(({ ms, error }) => [ms, error]),
      [
        [1, 'e1'],
        [2, 'e2'],
      ],
    )
    assert.equal(deadLetter?.tries, 2)
  })

  rule('L8 partial: the rest is a new run with a new id, its parent the old one, its tries carried on', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd'])
    const run = await t.claimOne()
    await t.append('newcomer')
    await t.settleOk(run, partial({ retry: [t.id('d'), t.id('b')], after: 100 }))
    const rest = await t.claimOneAfter(100)
    assert.deepEqual(t.names(rest), ['b', 'd'])
    assert.notEqual(rest.runId, run.runId)
    assert.deepEqual([rest.parent, rest.tries], [run.runId, 1])
    await t.settleOk(rest, retry(10))
    const again2 = await t.claimOneAfter(10)
    assert.deepEqual([again2.runId, t.names(again2), again2.tries], [rest.runId, ['b', 'd'], 2])
    await t.settleOk(again2)
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer'])
  })

  rule('L8 partial of a partial: another set of events has another id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const first = await t.claimOne()
    await t.settleOk(first, partial({ retry: [t.id('b'), t.id('c')] }))
    const second = await t.claimOne()
    await t.settleOk(second, partial({ retry: [t.id('c')] }))
    const third = await t.claimOne()
    assert.deepEqual([t.names(third), third.parent, third.tries], [['c'], second.runId, 2])
    assert.equal(new Set([first.runId, second.runId, third.runId]).size, 3)
  })

  rule('L8 partial: the dead part is a dead letter with a new id and the same parent', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne()
    await t.settleOk(run, partial({ retry: [t.id('a')], dead: [t.id('c')], after: 10 }))
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual([t.names(deadLetter.events), deadLetter.parent, deadLetter.reason], [['c'], run.runId, 'refused'])
    assert.notEqual(deadLetter.id, run.runId)
    const rest = await t.claimOneAfter(10)
    assert.deepEqual(t.names(rest), ['a'])
    assert.notEqual(rest.runId, deadLetter.id)
  })

  rule('L8 partial with nothing to retry ends the run', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await t.append('newcomer')
    await t.settleOk(run, partial({ dead: [t.id('a')] }))
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer'])
    assert.deepEqual(
      (await t.findAll('dead')).map((deadLetter) => t.names(deadLetter.events)),
      [['a']],
    )
  })

  rule('L8 partial that blocks: the lane waits for the dead part', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await t.append('newcomer')
    await t.settleOk(run, partial({ dead: [t.id('a')], block: true }))
    await t.assertNothingReady()
    await t.steerDeadLetter(assertSingle(await t.findAll('dead')).id, 'drop')
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer'])
  })

  rule('L8 partial: unknown ids are ignored; without known ids the run is done', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('b'), 'stranger'] }))
    const rest = await t.claimOne()
    assert.deepEqual(t.names(rest), ['b'])
    await t.settleOk(rest, partial({ retry: [t.id('a')], dead: ['stranger'] }))
    await t.assertNothingReady()
    assert.equal((await t.store.get({ kind: 'runs', id: rest.runId })).item?.kind, 'done')
    assert.deepEqual(await t.findAll('dead'), [])
  })

  rule('L8 partial: an id in both lists is dead', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('a'), t.id('b')], dead: [t.id('b')] }))
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
    assert.deepEqual(t.names(assertSingle(await t.findAll('dead')).events), ['b'])
  })

  rule('L8 an accepted part does not run again when the rest lapses', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('b')] }))
    await t.claimOne()
    t.expireLeases()
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L8 dropped: the run ends and none of its events runs again', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await t.settleOk(run, dropped)
    t.clock.advance(86_400_000)
    await t.assertNothingReady()
    assert.deepEqual(await t.findAll('dead'), [])
    const record = (await t.store.get({ kind: 'runs', id: run.runId })).item
    assert.deepEqual([record?.kind, record?.reason], ['dropped', 'not wanted'])
  })

  rule('snooze keeps id, events and state, uses no attempt, and remembers since when', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    assert.deepEqual([run.snoozedSince, run.stateBase64], [0, ''])
    const since = t.clock.now()
    await t.settleOk(run, snoozed(100, 'c3RhdGU='))
    const second = await t.claimOneAfter(100)
    assert.deepEqual(
      [second.runId, t.names(second), second.tries, second.stateBase64, second.snoozedSince],
      [run.runId, ['a'], 0, 'c3RhdGU=', since],
    )
    await t.settleOk(second, snoozed(100, 'bmV3'))
    const third = await t.claimOneAfter(100)
    assert.deepEqual([third.stateBase64, third.snoozedSince], ['bmV3', since])
  })

  rule('snooze goes to the tail: lanes that are ready before it is due go first', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const run = (await t.claim({ maxRuns: 1 }))[0]
    assert.ok(run)
    await t.settleOk(run, snoozed(0))
    assert.deepEqual(getKeys((await t.settleAndClaim({ claim: [createClaimRequest()] })).claimed), ['b', 'a'])
  })

  rule('L8 a run that failed and then is done leaves one record with all attempts', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(0), { attempt: { at: t.clock.now(), ms: 5, error: 'refused' } })
    await t.settleOk(await t.claimOne(), done)
    const record = assertSingle(await t.findAll('runs'))
    assert.deepEqual([record.id, record.kind, record.tries, t.names(record.events)], [run.runId, 'done', 1, ['a']])
    assert.deepEqual(
      record.attempts.map((attempt) => attempt.error),
      ['refused'],
    )
  })

  rule('L8 the accepted part has a record under the old id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne()
    await t.settleOk(run, partial({ retry: [t.id('b')], dead: [t.id('c')] }))
    const record = (await t.store.get({ kind: 'runs', id: run.runId })).item
    assert.deepEqual([record?.kind, t.names(record?.events ?? [])], ['partial', ['a']])
  })

  rule('L8 L9 after a partial ending of a dead letter the rest continues and no dead letter stays', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const first = await t.claimOne()
    await t.settleOk(first, { kind: 'dead', reason: 'broken', block: true })
    await t.append('newcomer')
    await t.steerDeadLetter(first.runId, 'retry')
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('b'), t.id('c')], after: 10 }))
    await t.assertNothingReady()
    const rest = await t.claimOneAfter(10)
    assert.deepEqual([t.names(rest), rest.parent], [['b', 'c'], first.runId])
    await t.settleOk(rest)
    assert.deepEqual(await t.findAll('dead'), [])
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer'])
  })

  rule('L8 L9 a dead letter that dies in part leaves one dead letter with that part', async (t) => {
    await t.appendEach(['a', 'b'])
    const first = await t.claimOne()
    await t.settleOk(first, dead)
    await t.steerDeadLetter(first.runId, 'retry')
    await t.settleOk(await t.claimOne(), partial({ dead: [t.id('b')] }))
    await t.assertNothingReady()
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual([deadLetter.state, t.names(deadLetter.events)], ['dead', ['b']])
    assert.equal(await t.steerDeadLetter(deadLetter.id, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L8 L9 a blocking dead letter accepted in part still blocks when the rest dies', async (t) => {
    await t.appendEach(['a', 'b'])
    const first = await t.claimOne()
    await t.settleOk(first, { kind: 'dead', reason: 'broken', block: true })
    await t.append('newcomer')
    await t.steerDeadLetter(first.runId, 'retry')
    await t.settleOk(await t.claimOne(), partial({ retry: [t.id('b')] }))
    await t.settleOk(await t.claimOne(), dead)
    await t.assertNothingReady()
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual([t.names(deadLetter.events), deadLetter.blocks], [['b'], true])
    await t.steerDeadLetter(deadLetter.id, 'drop')
    assert.deepEqual(t.names(await t.claimOne()), ['newcomer'])
  })
}
