// L1: a lane has one live run over all processes, and a run that has lost its lease can change nothing.
import assert from 'node:assert/strict'
import { getKeys, type Suite } from './stage.ts'
import { snoozed, createClaimRequest, dead, done, LEASE, released, retry } from './builders.ts'

export const oneAtATime: Suite = (rule) => {
  rule('L1 a lane with a live run is not claimed again, however many events wait in it', async (t) => {
    await t.append('a')
    const run = await t.claimOne({ process: 'p1' })
    await t.append('b')
    await t.assertNothingReady({ process: 'p2' })
    t.clock.advance(LEASE - 1)
    await t.assertNothingReady({ process: 'p2' })
    assert.equal(await t.settle(run, done), 'ok')
    assert.deepEqual(t.names(await t.claimOne({ process: 'p2' })), ['b'])
  })

  rule('L1 callers that claim at the same moment share the lanes and never one lane', async (t) => {
    const other = await t.openSecondCaller()
    const lanes = Array.from({ length: 20 }, (_, n) => `k${n}`)
    for (const key of lanes) await t.append(key, { key })
    const turns = [t.store, other, t.store, other].map((store, n) =>
      store.settleAndClaim({
        process: `q${n}`,
        request: 1,
        routes: t.routes,
        settle: [],
        claim: [createClaimRequest({ maxRuns: 8 })],
        budget: 1e6,
      }),
    )
    const claimed = (await Promise.all(turns)).flatMap((reply) => getKeys(reply.claimed))
    assert.deepEqual(claimed.toSorted(), lanes.toSorted())
  })

  rule('L1 a token never repeats, in any lane, nor after the row of its lane is gone', async (t) => {
    const tokens: number[] = []
    for (let round = 0; round < 5; round++) {
      await t.append(`a${round}`, { key: 'a' })
      await t.append(`b${round}`, { key: 'b' })
      for (const run of await t.claim()) {
        tokens.push(run.token)
        await t.settleOk(run)
      }
      t.clock.advance(1)
      await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
    }
    assert.equal(tokens.length, 10)
    assert.equal(new Set(tokens).size, 10)
  })

  rule('L1 each lease of one run has a token of its own, over retries, lapses and releases', async (t) => {
    await t.append('a')
    const tokens: number[] = []
    for (const outcome of [retry(0), released, undefined, snoozed(0)]) {
      const run = await t.claimOne()
      tokens.push(run.token)
      if (outcome === undefined) t.expireLeases()
      else await t.settleOk(run, outcome)
    }
    tokens.push((await t.claimOne()).token)
    assert.equal(new Set(tokens).size, 5)
  })

  rule('L1 a settlement with the token of an earlier lease returns lost and changes nothing', async (t) => {
    await t.append('a')
    const stalled = await t.claimOne({ process: 'p1' })
    t.expireLeases()
    const current = await t.claimOne({ process: 'p2' })
    for (const outcome of [done, dead, retry(0), { kind: 'dropped', reason: '' }, released] as const) {
      assert.equal(await t.settle(stalled, outcome), 'lost')
    }
    assert.equal(await t.renew(current), 'ok')
    assert.deepEqual(await t.findAll('dead'), [])
    assert.deepEqual(await t.findAll('runs'), [])
    assert.equal(await t.settle(current, retry(0)), 'ok')
    const third = await t.claimOne()
    assert.equal(third.runId, current.runId)
    assert.equal(third.tries, 1)
    assert.deepEqual(t.names(third), ['a'])
  })

  rule(
    'L1 a stalled settlement cannot end a later run of its lane, even if the row was removed and created again',
    async (t) => {
      await t.append('a')
      const stalled = await t.claimOne({ lease: 100 })
      t.expireLeases(100)
      await t.settleOk(await t.claimOne())
      await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
      await t.append('b')
      const later = await t.claimOne()
      assert.equal(await t.settle(stalled, done), 'lost')
      assert.equal(await t.settle(later, retry(0)), 'ok')
      assert.deepEqual(t.names(await t.claimOne()), ['b'])
    },
  )

  rule('L1 at the end of the lease a settlement is lost, even if the lane was not claimed since', async (t) => {
    await t.append('a', { key: 'in-time' })
    await t.append('b', { key: 'late' })
    const [inTime, late] = await t.claim()
    assert.ok(inTime && late)
    t.clock.advance(LEASE - 1)
    assert.equal(await t.settle(inTime, done), 'ok')
    t.clock.advance(1)
    assert.equal(await t.settle(late, done), 'lost')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L1 a run ends once: its token is lost after the settlement', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(1_000))
    assert.equal(await t.settle(run, done), 'lost')
    assert.equal(await t.renew(run), 'lost')
    assert.equal((await t.claimOneAfter(1_000)).tries, 1)
  })

  rule('L1 a token is good for its own lane only', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const [a, b] = await t.claim()
    assert.ok(a && b)
    assert.equal(await t.settle({ ...a, token: b.token }, done), 'lost')
    assert.equal(await t.renew({ ...b, token: a.token }), 'lost')
    assert.equal(await t.settle({ ...a, lane: 'no-such-lane' }, done), 'lost')
    assert.equal(await t.renew({ ...a, lane: 'no-such-lane' }), 'lost')
    await t.settleOk(a)
    await t.settleOk(b)
  })

  rule('L1 a renewal counts the lease from now', async (t) => {
    await t.append('a')
    const run = await t.claimOne({ lease: 1_000 })
    t.clock.advance(600)
    assert.equal(await t.renew(run, { lease: 1_000 }), 'ok')
    t.clock.advance(999)
    await t.assertNothingReady({ process: 'p2' })
    t.clock.advance(1)
    const back = await t.claimOne({ process: 'p2' })
    assert.equal(back.runId, run.runId)
    assert.equal(back.lapses, 1)
  })

  rule('L1 a renewal at the end of the lease is lost and does not bring it back', async (t) => {
    await t.append('a')
    const run = await t.claimOne({ lease: 1_000 })
    t.expireLeases(1_000)
    assert.equal(await t.renew(run), 'lost')
    assert.equal((await t.claimOne({ process: 'p2' })).runId, run.runId)
  })

  rule('L1 a renewal with an old token does not lengthen the lease of the new one', async (t) => {
    await t.append('a')
    const stalled = await t.claimOne({ lease: 1_000 })
    t.expireLeases(1_000)
    const current = await t.claimOne({ process: 'p2', lease: 1_000 })
    t.clock.advance(900)
    assert.equal(await t.renew(stalled, { lease: 60_000 }), 'lost')
    t.clock.advance(100)
    assert.equal(await t.settle(current, done), 'lost')
  })

  rule('L1 a call settles before it claims: a lane freed by a run is claimed in the same call', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b')
    const settle = {
      lane: run.lane,
      token: run.token,
      outcome: done,
      whileRunning: 'window',
      keep: 0,
      attempt: undefined,
      publish: [],
    } as const
    const reply = await t.settleAndClaim({ settle: [settle], claim: [createClaimRequest()] })
    assert.deepEqual(reply.settled, ['ok'])
    assert.deepEqual(
      reply.claimed.map((lease) => t.names(lease)),
      [['b']],
    )
  })

  rule('L1 run ids are never given twice, not even by another store', async (t) => {
    const other = await t.openEmptyStore()
    await t.append('a')
    await other.append({ routes: (await other.stats()).routes, events: [t.event('b')] })
    const here = await t.claimOne()
    const call = { process: 'p1', request: 1, routes: 0, settle: [], claim: [createClaimRequest()], budget: 1e6 }
    const [there] = (await other.settleAndClaim(call)).claimed
    assert.ok(there)
    assert.notEqual(here.runId, there.runId)
    await t.settleOk(here)
    await t.append('c')
    assert.notEqual((await t.claimOne()).runId, here.runId)
  })
}
