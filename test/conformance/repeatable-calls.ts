// Every call may be repeated after a lost reply: the second call changes nothing more than the first.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import { getKeys, assertSingle, sorted, type Suite } from './stage.ts'
import {
  encodeText,
  createLimit,
  createClaimRequest,
  dead,
  done,
  createRetentionPolicy,
  createUnrouted,
  createPlacement,
  createReserveRequest,
  SECOND,
} from './builders.ts'

export const repeatableCalls: Suite = (rule) => {
  rule('append repeated: each event returns repeated and is in its lanes once', async (t) => {
    const events = [t.event('a', { key: 'x' }), t.event('b', { keys: ['x', 'y'] })]
    assert.deepEqual(
      (await t.appendEvents(...events)).map((answer) => answer.kind),
      ['stored', 'stored'],
    )
    assert.deepEqual(
      (await t.appendEvents(...events)).map((answer) => answer.kind),
      ['repeated', 'repeated'],
    )
    assert.deepEqual(
      (await t.claim()).map((run) => t.names(run)),
      [['a', 'b'], ['b']],
    )
  })

  rule('append repeated: an unrouted event has its record once', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    assert.equal((await t.findAll('unrouted')).length, 1)
  })

  rule('settleAndClaim repeated: settles, publishes and claims once, and returns the same', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.append('b', { key: 'b' })
    const publish = [t.event('p', { flow: 'next' })]
    const end = { whileRunning: 'window', keep: 0, attempt: undefined } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: done, publish, ...end }]
    const call = { process: 'p9', request: 3, settle, claim: [createClaimRequest()] }
    const first = await t.settleAndClaim(call)
    const second = await t.settleAndClaim(call)
    assert.deepEqual([second.settled, second.claimed], [first.settled, first.claimed])
    assert.deepEqual(getKeys(second.claimed), ['b'])
    assert.deepEqual(t.names(await t.claimOne({ flow: 'next' })), ['p'])
    assert.equal((await t.findAll('runs')).length, 1)
  })

  rule('settleAndClaim repeated: a settlement that was lost is lost again', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    t.expireLeases()
    const end = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    const settle = [{ lane: run.lane, token: run.token, outcome: done, ...end }]
    const call = { process: 'p9', request: 3, settle }
    assert.deepEqual((await t.settleAndClaim(call)).settled, ['lost'])
    assert.deepEqual((await t.settleAndClaim(call)).settled, ['lost'])
  })

  rule('renew repeated: ok, and a commit stays a commit', async (t) => {
    await t.append('a', { quiet: 1, max: 60 * SECOND })
    const run = await t.claimOneAfter(1)
    assert.deepEqual([await t.renew(run, { commit: true }), await t.renew(run, { commit: true })], ['ok', 'ok'])
    await t.append('b', { quiet: 1, max: 60 * SECOND, cancel: true })
    assert.equal(await t.renew(run, { commit: true }), 'ok')
  })

  rule('steer repeated: returns already', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    assert.deepEqual(
      [await t.steerDeadLetter(run.runId, 'retry'), await t.steerDeadLetter(run.runId, 'retry')],
      ['ok', 'already'],
    )
    await t.append('b', { key: 'b', quiet: SECOND })
    assert.deepEqual([await t.steer('b', 'run-now'), await t.steer('b', 'run-now')], ['ok', 'already'])
    assert.deepEqual(sorted(getKeys(await t.claim())), ['b', 'k'])
  })

  rule('steer repeated: holding and dropping twice is holding and dropping once', async (t) => {
    await t.append('a', { quiet: SECOND })
    await t.hold('k', SECOND)
    const held = (await t.getLane('k'))?.hold
    await t.hold('k', SECOND)
    assert.deepEqual((await t.getLane('k'))?.hold, held)
    await t.steer('k', 'drop')
    await t.steer('k', 'drop')
    t.clock.advance(60 * SECOND)
    await t.assertNothingReady()
  })

  rule('purge repeated: nothing more to remove', async (t) => {
    await t.append('a')
    const what = { kind: 'lanes', ids: [laneId('flow', 'k')] } as const
    assert.equal((await t.store.purge({ what, n: 10 })).events, 1)
    const again = await t.store.purge({ what, n: 10 })
    assert.deepEqual([again.events, again.deadLetters, again.runs, again.more], [0, 0, 0, false])
  })

  rule('reserve repeated: one slot', async (t) => {
    const requests = [
      createReserveRequest('t1', { api: createLimit(1, SECOND) }),
      createReserveRequest('t2', { api: createLimit(1, SECOND) }),
    ]
    const first = await t.store.reserve({ requests })
    const second = await t.store.reserve({ requests })
    assert.deepEqual(second.results, first.results)
    const third = assertSingle(
      (await t.store.reserve({ requests: [createReserveRequest('t3', { api: createLimit(1, SECOND) })] })).results,
    )
    assert.equal(third.kind === 'granted' && third.wait, 2_200)
  })

  rule('regulate repeated: a pause is as long, a slot goes back once', async (t) => {
    const pause = { name: 'api', act: { kind: 'pause', for: 5 * SECOND, slow: true } } as const
    assert.equal((await t.store.regulate(pause)).pausedFor, 5 * SECOND)
    assert.equal((await t.store.regulate(pause)).pausedFor, 5 * SECOND)
    const other = { other: createLimit(1, SECOND) }
    await t.store.reserve({ requests: [createReserveRequest('t1', other), createReserveRequest('t2', other)] })
    const release = { name: 'other', act: { kind: 'release', ticket: 't2' } } as const
    await t.store.regulate(release)
    await t.store.regulate(release)
    const next = assertSingle((await t.store.reserve({ requests: [createReserveRequest('t3', other)] })).results)
    assert.equal(next.kind === 'granted' && next.wait, 1_100)
  })

  rule('pressure repeated: raised once', async (t) => {
    const flows = [{ flow: 'flow', raise: true }]
    assert.deepEqual((await t.store.updatePressure({ flows })).levels, (await t.store.updatePressure({ flows })).levels)
  })

  rule('writeDocs repeated: a conflict that shows the revision of one’s own write', async (t) => {
    const call = {
      writes: [{ kind: 'flow', id: 'a', ifRev: 0, body: encodeText('one') }],
      raiseRoutes: true,
      audit: { who: 'ada', what: 'made a' },
    }
    const first = await t.store.writeDocs(call)
    const second = await t.store.writeDocs(call)
    assert.ok(first.kind === 'written' && second.kind === 'conflict')
    assert.equal(second.rev, first.revs[0])
    assert.equal(second.routes, first.routes)
    assert.equal((await t.findAll('audit')).length, 1)
  })

  rule('claimUnrouted, place and maintain repeated: nothing twice', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const call = { n: 10, lease: SECOND, reasons: ['outbox'], flows: [] } as const
    const leased = assertSingle((await t.store.claimUnrouted(call)).unrouted)
    assert.deepEqual((await t.store.claimUnrouted(call)).unrouted, [])
    const items = [
      { kind: 'unrouted', id: leased.id, token: leased.token, placements: [createPlacement()], unrouted: [] },
    ] as const
    await t.store.place({ routes: t.routes, items })
    await t.store.place({ routes: t.routes, items })
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['a'])
    await t.settleOk(run)
    t.clock.advance(SECOND)
    const maintenance = { budget: 1_000, policy: createRetentionPolicy({ events: { '': 0 }, runs: { '': 0 } }) }
    assert.equal((await t.store.maintain(maintenance)).counts.events, 1)
    assert.equal((await t.store.maintain(maintenance)).counts.events, 0)
  })

  rule('a repeated settleAndClaim and a repeated replay are known after maintenance as well', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement()] }] as const
    await t.store.place({ routes: t.routes, items })
    const call = { process: 'p9', request: 3, claim: [createClaimRequest({ lease: 3_600 * SECOND })] }
    const first = await t.settleAndClaim(call)
    t.clock.advance(60 * SECOND)
    await t.maintain({ runs: { '': 0 } })
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['already'])
    assert.deepEqual(getKeys((await t.settleAndClaim(call)).claimed), getKeys(first.claimed))
    await assert.rejects(t.settleAndClaim({ ...call, request: 2 }), { code: 'REQUEST_STALE' })
  })
}
