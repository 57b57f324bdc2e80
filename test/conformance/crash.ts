// L12: a lapsed lease is not an attempt. One poison event neither crashes forever nor takes its neighbours down.
import assert from 'node:assert/strict'
import type { LeasedRun } from '../../src/store/contract/index.ts'
import { getKeys, type ConformanceStage, type Suite } from './stage.ts'
import { snoozed, createClaimRequest, done, LEASE, released, retry } from './builders.ts'

/** Runs that have lapsed this often; the next claim finds one more lapse. */
async function lapseRuns(
  t: ConformanceStage,
  times: number,
  ...keyed: readonly string[]
): Promise<readonly LeasedRun[]> {
  for (const key of keyed) await t.append(key, { key })
  for (let n = 0; n < times; n++) {
    assert.equal((await t.claim()).length, keyed.length)
    t.expireLeases()
  }
  return t.claim()
}

export const crash: Suite = (rule) => {
  rule(
    'L12 a run whose lease has ended is ready at that time, with the same id and events, and no try is used',
    async (t) => {
      await t.appendEach(['a', 'b'])
      const run = await t.claimOne()
      await t.append('c')
      const back = await t.claimOneAfter(LEASE)
      assert.deepEqual([back.runId, t.names(back), back.tries, back.lapses], [run.runId, ['a', 'b'], 0, 1])
      assert.notEqual(back.token, run.token)
      await t.settleOk(back)
      assert.deepEqual(t.names(await t.claimOne()), ['c'])
    },
  )

  rule('L12 a first lapse costs nothing: two hundred runs of one dead process come back at once', async (t) => {
    const lanes = Array.from({ length: 200 }, (_, n) => `k${n}`)
    await t.appendEvents(...lanes.map((key) => t.event(key, { key })))
    assert.equal((await t.claim({ maxRuns: 200 })).length, 200)
    t.expireLeases()
    assert.equal((await t.claim({ maxRuns: 200, maxSuspects: 0, maxFailing: 0 })).length, 200)
  })

  rule('L12 from the second lapse on a run is a suspect: a process claims at most maxSuspects', async (t) => {
    await lapseRuns(t, 1, 'x', 'y', 'z')
    t.expireLeases()
    await t.assertNothingReady({ maxSuspects: 0 })
    assert.deepEqual(getKeys(await t.claim({ maxSuspects: 1, process: 'p1' })), ['x'])
    assert.deepEqual(getKeys(await t.claim({ maxSuspects: 1, process: 'p2' })), ['y'])
    assert.deepEqual(getKeys(await t.claim({ maxSuspects: 1, process: 'p3' })), ['z'])
  })

  rule('L12 suspects delay no other lane, and keep their place', async (t) => {
    await lapseRuns(t, 1, 'suspect', 'suspect too')
    t.expireLeases()
    t.clock.advance(10)
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, maxSuspects: 0 })), ['a', 'b'])
    await t.append('c', { key: 'c' })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, maxSuspects: 1 })), ['suspect', 'c'])
  })

  rule('L12 the fourth lapse makes the run a dead letter that shows how often it crashed', async (t) => {
    const [run] = await lapseRuns(t, 3, 'k')
    assert.deepEqual([run?.lapses, run?.tries], [3, 0])
    t.expireLeases()
    const reply = await t.settleAndClaim({ claim: [createClaimRequest({ maxSuspects: 1 })] })
    assert.deepEqual(reply.claimed, [])
    assert.deepEqual(reply.crashed, [{ lane: run?.lane, run: run?.runId }])
    const deadLetter = await t.getDeadLetter(run?.runId ?? '')
    assert.deepEqual(
      [
        deadLetter?.state,
        deadLetter?.reason,
        deadLetter?.lapses,
        deadLetter?.tries,
        deadLetter?.blocks,
        t.names(deadLetter?.events ?? []),
      ],
      ['dead', 'crashed', 4, 0, false, ['k']],
    )
    assert.deepEqual((await t.settleAndClaim({ claim: [createClaimRequest()] })).crashed, [])
  })

  rule('L12 a crashed run takes no slot: the next lane is claimed in the same call', async (t) => {
    await lapseRuns(t, 3, 'k')
    t.expireLeases()
    await t.append('other', { key: 'other' })
    const reply = await t.settleAndClaim({ claim: [createClaimRequest({ maxRuns: 1, maxSuspects: 1 })] })
    assert.equal(reply.crashed.length, 1)
    assert.deepEqual(getKeys(reply.claimed), ['other'])
  })

  rule('L12 after a crash the lane continues with its waiting events', async (t) => {
    await lapseRuns(t, 3, 'k')
    await t.append('next')
    t.expireLeases()
    const { crashed, claimed } = await t.settleAndClaim({ claim: [createClaimRequest()] })
    assert.equal(crashed.length, 1)
    // A store may claim the freed lane in the same call or in the next one.
    const runs = [...claimed, ...(await t.claim())]
    assert.deepEqual(
      runs.map((run) => t.names(run)),
      [['next']],
    )
  })

  rule('L12 L9 block: a run that crashes once too often blocks its lane with blockOnCrash', async (t) => {
    const [run] = await lapseRuns(t, 3, 'k')
    await t.append('next')
    t.expireLeases()
    assert.equal((await t.settleAndClaim({ claim: [createClaimRequest({ blockOnCrash: true })] })).crashed.length, 1)
    await t.assertNothingReady({ blockOnCrash: true })
    assert.equal(await t.steerDeadLetter(run?.runId ?? '', 'drop'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['next'])
  })

  rule('L12 a crashed dead letter can be retried by hand, with four lapses of its own', async (t) => {
    const [run] = await lapseRuns(t, 3, 'k')
    t.expireLeases()
    await t.assertNothingReady()
    await t.steerDeadLetter(run?.runId ?? '', 'retry')
    const back = await t.claimOne({ maxSuspects: 0 })
    assert.deepEqual([back.runId, back.lapses], [run?.runId, 0])
    t.expireLeases()
    assert.equal((await t.claimOne({ maxSuspects: 0 })).lapses, 1)
  })

  rule('L12 lapses and tries are counted apart', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(0))
    await t.claimOne()
    t.expireLeases()
    const run = await t.claimOne()
    assert.deepEqual([run.tries, run.lapses], [1, 1])
    await t.settleOk(run, retry(0))
    const last = await t.claimOne()
    assert.deepEqual([last.tries, last.lapses], [2, 1])
  })

  rule('L12 a lapse keeps the state of a snooze', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), snoozed(0, 'c3RhdGU='))
    await t.claimOne()
    t.expireLeases()
    assert.equal((await t.claimOne()).stateBase64, 'c3RhdGU=')
  })

  rule('L12 a release is not a lapse', async (t) => {
    await t.append('a')
    for (let n = 0; n < 6; n++) await t.settleOk(await t.claimOne({ maxSuspects: 0 }), released)
    assert.equal((await t.claimOne({ maxSuspects: 0 })).lapses, 0)
  })

  rule('L12 a claim repeated with its number gives the same leases, and claims nothing more', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const call = { process: 'p1', request: 7, claim: [createClaimRequest({ maxRuns: 1 })] }
    const first = await t.settleAndClaim(call)
    t.clock.advance(10)
    const second = await t.settleAndClaim(call)
    assert.deepEqual(getKeys(first.claimed), ['a'])
    assert.equal(first.claimed[0]?.until, first.now + LEASE)
    assert.deepEqual(second.claimed, first.claimed)
    const third = await t.settleAndClaim({ ...call, request: 8 })
    assert.deepEqual(getKeys(third.claimed), ['b'])
    t.clock.advance(LEASE)
    assert.deepEqual(
      (await t.claim({ process: 'p2' })).map((run) => run.lapses),
      [1, 1],
    )
  })

  rule('L12 a repeated claim gives only those of its leases that are still live', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const call = { process: 'p1', request: 1, claim: [createClaimRequest({ lease: 1_000 })] }
    const { claimed } = await t.settleAndClaim(call)
    const [a] = claimed
    assert.ok(a)
    t.clock.advance(500)
    await t.renew(a, { lease: 1_000 })
    t.clock.advance(500)
    const repeated = await t.settleAndClaim(call)
    assert.deepEqual(
      repeated.claimed.map((run) => [run.key, run.token, run.until - repeated.now]),
      [['a', a.token, 500]],
    )
    assert.deepEqual(getKeys(await t.claim({ process: 'p2' })), ['b'])
  })

  rule('L12 a repeated settleAndClaim settles nothing twice and returns the same', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: retry(0), ...end }]
    const call = { process: 'p1', request: 50, settle, claim: [createClaimRequest()] }
    const first = await t.settleAndClaim(call)
    const second = await t.settleAndClaim(call)
    assert.deepEqual(second.settled, ['ok'])
    assert.deepEqual(second.claimed, first.claimed)
    assert.deepEqual(
      second.claimed.map((lease) => lease.tries),
      [1],
    )
    assert.equal(await t.settle(first.claimed[0] ?? run, done), 'ok')
  })

  rule('L12 a request number lower than the last is rejected, per process', async (t) => {
    await t.append('a')
    await t.settleAndClaim({ process: 'p1', request: 5 })
    await assert.rejects(t.settleAndClaim({ process: 'p1', request: 4, claim: [createClaimRequest()] }), {
      code: 'REQUEST_STALE',
    })
    const { claimed } = await t.settleAndClaim({ process: 'p2', request: 4, claim: [createClaimRequest()] })
    assert.deepEqual(getKeys(claimed), ['k'])
  })
}
