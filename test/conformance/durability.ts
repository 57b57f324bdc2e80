// Acknowledged data survives a restart, counters included: nothing is lost, nothing runs twice, and no token repeats.
import assert from 'node:assert/strict'
import { getKeys, assertSingle, type Suite } from './stage.ts'
import {
  snoozed,
  deadAndBlocking,
  encodeText,
  createLimit,
  createClaimRequest,
  dead,
  done,
  createUnrouted,
  createPlacement,
  createReserveRequest,
  retry,
  SECOND,
} from './builders.ts'

/** For a store that nothing can reopen. */
export const inMemory: Suite = (rule) => {
  rule('the store reports that it is not durable', async (t) => {
    assert.equal((await t.store.stats()).durable.isDurable, false)
  })
}

export const durability: Suite = (rule) => {
  rule('durable: the store reports that it is durable', async (t) => {
    assert.equal((await t.store.stats()).durable.isDurable, true)
  })

  rule('durable: events, windows and their order', async (t) => {
    await t.append('a', { key: 'a', quiet: 200 })
    await t.append('b', { key: 'b', quiet: 100, body: new Uint8Array([0, 255, 10]) })
    await t.append('b2', { key: 'b', quiet: 100 })
    await t.append('c', { key: 'c', quiet: 100 })
    await t.reopen()
    t.clock.advance(99)
    await t.assertNothingReady()
    t.clock.advance(101)
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['b', ['b', 'b2']],
        ['c', ['c']],
        ['a', ['a']],
      ],
    )
    assert.deepEqual(Buffer.from(runs[0]?.events[0]?.body ?? []), Buffer.from([0, 255, 10]))
  })

  rule('L1 durable: a live run keeps its lease and its token', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.reopen()
    await t.assertNothingReady({ process: 'p2' })
    assert.equal(await t.renew(run), 'ok')
    await t.reopen()
    assert.equal(await t.settle(run, done), 'ok')
    await t.reopen()
    await t.assertNothingReady()
  })

  rule('L1 durable: tokens and tickets go on where they were, though every row is gone', async (t) => {
    const tokens: number[] = []
    for (let n = 0; n < 4; n++) {
      await t.append(`e${n}`)
      const run = await t.claimOne()
      tokens.push(run.token)
      await t.settleOk(run)
      t.clock.advance(SECOND)
      await t.maintain({ events: { '': 0 }, runs: { '': 0 } })
      await t.reopen()
    }
    assert.equal(new Set(tokens).size, 4)
    assert.deepEqual(
      tokens.toSorted((a, b) => a - b),
      tokens,
    )
  })

  rule('L5 durable: equal deadlines keep their order over a restart between them', async (t) => {
    await t.append('a', { key: 'a', every: SECOND })
    await t.reopen()
    await t.append('b', { key: 'b', every: SECOND })
    await t.reopen()
    t.clock.advance(SECOND)
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })

  rule('L8 L12 durable: tries, lapses, state and attempts', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, retry(0), { attempt: { at: t.clock.now(), ms: 7, error: 'refused' } })
    await t.settleOk(await t.claimOne(), snoozed(0, 'c3RhdGU='))
    await t.claimOne()
    t.expireLeases()
    await t.reopen()
    const back = await t.claimOne()
    assert.deepEqual(
      [back.runId, back.tries, back.lapses, back.stateBase64, t.names(back)],
      [run.runId, 1, 1, 'c3RhdGU=', ['a']],
    )
    await t.settleOk(back, dead)
    await t.reopen()
    assert.deepEqual(
      (await t.getDeadLetter(run.runId))?.attempts.map((attempt) => attempt.error),
      ['refused'],
    )
  })

  rule('L9 durable: dead letters, the lanes they block, and queued ones', async (t) => {
    await t.append('a', { key: 'a' })
    const a = await t.claimOne()
    await t.settleOk(a, deadAndBlocking)
    await t.append('b', { key: 'b' })
    const b = await t.claimOne()
    await t.settleOk(b, dead)
    await t.append('a2', { key: 'a' })
    await t.steerDeadLetter(b.runId, 'retry')
    await t.reopen()
    assert.deepEqual(getKeys(await t.claim()), ['b'])
    assert.equal(await t.steerDeadLetter(a.runId, 'drop'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['a2'])
  })

  rule('L10 durable: identities, and that a repeated event is recognised', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-' })
    await t.settleOk(await t.claimOne())
    await t.reopen()
    assert.deepEqual(await t.append('b', { dedupe: 'x', body: '-' }), { kind: 'duplicate', of: t.id('a') })
    assert.deepEqual(await t.append('a', { dedupe: 'x', body: '-' }), { kind: 'repeated' })
    await t.reopen()
    assert.equal((await t.getEventRecord('a'))?.duplicates, 1)
  })

  rule('L12 durable: the last request of each process', async (t) => {
    await t.append('a')
    const call = { process: 'p1', request: 9, claim: [createClaimRequest()] }
    const first = await t.settleAndClaim(call)
    await t.reopen()
    const second = await t.settleAndClaim(call)
    assert.deepEqual(getKeys(first.claimed), ['k'])
    assert.deepEqual(
      second.claimed.map((run) => [run.token, run.runId, t.names(run)]),
      first.claimed.map((run) => [run.token, run.runId, t.names(run)]),
    )
    await assert.rejects(t.settleAndClaim({ ...call, request: 8 }), { code: 'REQUEST_STALE' })
  })

  rule('L6c durable: a request to cancel, and a commit', async (t) => {
    const words = { quiet: 1, max: 60 * SECOND }
    await t.append('a', { ...words, key: 'asked' })
    await t.append('b', { ...words, key: 'committed' })
    t.clock.advance(1)
    const [asked, committed] = await t.claim()
    assert.ok(asked && committed)
    await t.renew(committed, { commit: true })
    await t.append('c', { ...words, key: 'asked', cancel: true })
    await t.reopen()
    await t.append('d', { ...words, key: 'committed', cancel: true })
    assert.deepEqual([await t.renew(asked), await t.renew(committed)], ['cancel', 'ok'])
  })

  rule('L14 durable: pauses and holds', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { flow: 'mail', key: 'b' })
    await t.hold('a', 60 * SECOND)
    await t.pause('mail')
    await t.reopen()
    await t.assertNothingReady()
    await t.assertNothingReady({ flow: 'mail' })
    await t.resume('mail')
    assert.deepEqual(getKeys(await t.claim({ flow: 'mail' })), ['b'])
    assert.deepEqual(getKeys([await t.claimOneAfter(60 * SECOND)]), ['a'])
  })

  rule('L16 durable: replays, and the record that they were placed', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.reopen()
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['already'])
    assert.equal((await t.claimOne()).rank, 1)
  })

  rule('L2 L18 durable: unrouted events, documents, the audit and the epoch of the routes', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const writes = [{ kind: 'flow', id: 'a', ifRev: 0, body: encodeText('one') }]
    const written = await t.store.writeDocs({ writes, raiseRoutes: true, audit: { who: 'ada', what: 'made a' } })
    const trail = await t.findAll('audit')
    await t.reopen()
    assert.equal((await t.store.stats()).routes, written.routes)
    assert.deepEqual(await t.append('b'), { kind: 'routes-old' })
    const { docs } = await t.store.readDocs({ kind: 'flow', ids: ['a'], after: '', n: 1 })
    assert.deepEqual(
      docs.map((doc) => [doc.rev, Buffer.from(doc.body).toString()]),
      [[written.kind === 'written' && written.revs[0], 'one']],
    )
    assert.deepEqual(await t.findAll('audit'), trail)
    const { unrouted } = await t.store.claimUnrouted({ n: 10, lease: SECOND, reasons: ['outbox'], flows: [] })
    assert.deepEqual(
      unrouted.map((leased) => t.names([leased.event.id])),
      [['a']],
    )
  })

  rule('M1 M3 durable: slots, tickets and pauses of limits', async (t) => {
    const api = { api: createLimit(1, SECOND) }
    await t.store.reserve({ requests: [createReserveRequest('t1', api), createReserveRequest('t2', api)] })
    await t.reopen()
    const { results } = await t.store.reserve({
      requests: [createReserveRequest('t2', api), createReserveRequest('t3', api)],
    })
    assert.deepEqual(
      results.map((each) => each.kind === 'granted' && each.wait),
      [1_100, 2_200],
    )
    const paused = await t.store.regulate({ name: 'api', act: { kind: 'pause', for: 60 * SECOND, slow: false } })
    await t.reopen()
    const after = assertSingle((await t.store.reserve({ requests: [createReserveRequest('t2', api)] })).results)
    assert.deepEqual(after, { kind: 'granted', wait: 60 * SECOND, freshFor: 100, epoch: paused.epoch })
  })

  rule('L5g L20 L22 durable: turns of groups, permits and pressure', async (t) => {
    for (const key of ['a0', 'a1', 'b0']) await t.append(key, { key, group: key.slice(0, 1) })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1, maxPerGroup: 5 })), ['a0'])
    const wants = [{ name: 'flow', want: 3, max: 3 }]
    await t.store.leasePermits({ process: 'p1', lease: SECOND, requests: wants })
    const flows = [{ flow: 'flow', raise: true }]
    await t.store.updatePressure({ flows })
    await t.reopen()
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1, maxPerGroup: 5 })), ['b0'])
    assert.deepEqual((await t.store.leasePermits({ process: 'p2', lease: SECOND, requests: wants })).granted, [0])
    assert.deepEqual((await t.store.updatePressure({ flows: [{ flow: 'flow', raise: false }] })).levels, [0.25])
  })
}
