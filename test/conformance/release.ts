// L13, M6: a process that stops gives its runs back, and a limit defers runs. Neither uses an attempt.
import assert from 'node:assert/strict'
import { getKeys, sorted, type Suite } from './stage.ts'
import { done, releasedAfter, released, retry } from './builders.ts'

export const release: Suite = (rule) => {
  rule('L13 a run that is given back is ready at once: same id, same events, no try, no lapse', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne({ process: 'p1' })
    await t.append('c')
    await t.settleOk(run, released, { process: 'p1' })
    const back = await t.claimOne({ process: 'p2' })
    assert.deepEqual([back.runId, t.names(back), back.tries, back.lapses], [run.runId, ['a', 'b'], 0, 0])
    assert.notEqual(back.token, run.token)
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L13 a run that is given back keeps the tries and lapses it had', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(0))
    await t.claimOne()
    t.expireLeases()
    await t.settleOk(await t.claimOne(), released)
    const back = await t.claimOne()
    assert.deepEqual([back.tries, back.lapses], [1, 1])
  })

  rule('M6 a deferred run waits for that long and uses no try, no lapse and no snooze time', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(0))
    await t.settleOk(await t.claimOne(), releasedAfter(100, 'c3RhdGU='))
    const back = await t.claimOneAfter(100)
    assert.deepEqual([back.tries, back.lapses, back.snoozedSince, back.stateBase64], [1, 0, 0, 'c3RhdGU='])
  })

  rule('M6 L24 a failed run that is deferred is still failing', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(0))
    await t.settleOk(await t.claimOne(), releasedAfter(0))
    assert.deepEqual(await t.claim({ maxFailing: 0 }), [])
    assert.equal((await t.claim({ maxFailing: 1 })).length, 1)
  })

  rule('L13 the token of a run that was given back is lost', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, released)
    assert.equal(await t.renew(run), 'lost')
    assert.equal(await t.settle(run, done), 'lost')
  })

  rule('L13 a run that is given back goes behind lanes that were ready before', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.claimOne()
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.settleOk(run, released)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })

  rule('L13 leases that are not given back lapse by themselves', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const [a] = await t.claim({ process: 'p1' })
    assert.ok(a)
    await t.settleOk(a, released, { process: 'p1' })
    assert.deepEqual(getKeys(await t.claim({ process: 'p2' })), ['a'])
    t.expireLeases()
    assert.deepEqual(sorted(getKeys(await t.claim({ process: 'p3' }))), ['a', 'b'])
  })
}
