// L15 in the hard cases: purged events of a run that is live, between attempts or dead, and the neighbours that must survive.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import type { PurgeCall, PurgeReply } from '../../src/store/contract/index.ts'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import {
  deadAndBlocking,
  createClaimRequest,
  dead,
  done,
  createUnrouted,
  createPlacement,
  released,
  retry,
} from './builders.ts'

const lane: PurgeCall['what'] = { kind: 'lanes', ids: [laneId('flow', 'k')] }

async function purgeOnce(t: ConformanceStage, what: PurgeCall['what'] | string): Promise<PurgeReply> {
  return t.store.purge({ what: typeof what === 'string' ? { kind: 'event', id: t.id(what) } : what, n: 1_000 })
}

export const purgedRuns: Suite = (rule) => {
  for (const [by, what] of [
    ['lane', (): PurgeCall['what'] => lane],
    ['tenant', (): PurgeCall['what'] => ({ kind: 'tenant', tenant: 'acme' })],
    ['event', (t: ConformanceStage): PurgeCall['what'] => ({ kind: 'event', id: t.id('a') })],
  ] as const) {
    rule(`L15 by ${by}: a live run keeps its lease, and only its settlement frees the lane`, async (t) => {
      await t.append('a', { tenant: 'acme' })
      const run = await t.claimOne()
      await purgeOnce(t, what(t))
      assert.deepEqual((await t.store.readBodies({ events: [t.id('a')] })).bodies, [undefined])
      await t.append('b')
      await t.assertNothingReady()
      assert.equal(await t.renew(run), 'purged')
      assert.equal(await t.renew(run, { commit: true }), 'purged')
      await t.assertNothingReady()
      assert.equal(await t.settle(run, retry(0)), 'purged')
      const next = await t.claimOne()
      assert.deepEqual(t.names(next), ['b'])
      assert.notEqual(next.runId, run.runId)
    })
  }

  rule('L15 a purged run ends with every outcome: no dead letter, no retry, nothing in its lane', async (t) => {
    for (const outcome of [done, dead, deadAndBlocking, retry(0), released, { kind: 'cancelled' }] as const) {
      const name = `${outcome.kind} ${'block' in outcome && outcome.block}`
      await t.append(name)
      const run = await t.claimOne()
      await purgeOnce(t, name)
      assert.equal(await t.settle(run, outcome), 'purged')
      await t.assertNothingReady()
    }
    assert.deepEqual(await t.findAll('dead'), [])
  })

  rule('L15 L2b a run that was purged publishes nothing', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await purgeOnce(t, 'a')
    assert.equal(await t.settle(run, done, { publish: [t.event('p', { flow: 'next' })] }), 'purged')
    await t.assertNothingReady({ flow: 'next' })
    assert.equal(await t.getEventRecord('p'), undefined)
  })

  rule('L15 a repeated claim gives a purged run with an empty batch', async (t) => {
    await t.append('a')
    const call = { process: 'p1', request: 1, claim: [createClaimRequest()] }
    await t.settleAndClaim(call)
    await purgeOnce(t, lane)
    const { claimed } = await t.settleAndClaim(call)
    assert.deepEqual(
      claimed.map((run) => run.events),
      [[]],
    )
  })

  rule('L15 the next claim gets none of the events of a purged run that lapsed', async (t) => {
    await t.append('a')
    await t.claimOne()
    await purgeOnce(t, lane)
    await t.append('b')
    t.expireLeases()
    const seen: string[] = []
    for (let n = 0; n < 3; n++) {
      for (const run of await t.claim()) {
        seen.push(...t.names(run))
        await t.settle(run, done)
      }
    }
    assert.deepEqual(seen, ['b'])
  })

  rule(
    'L15 a live run of several events is void when one is purged; the others run again under another id',
    async (t) => {
      await t.appendEach(['a', 'b'])
      const run = await t.claimOne()
      await purgeOnce(t, 'a')
      assert.equal(await t.renew(run), 'purged')
      assert.equal(await t.settle(run, done), 'purged')
      const next = await t.claimOne()
      assert.deepEqual(t.names(next), ['b'])
      assert.notEqual(next.runId, run.runId)
    },
  )

  rule('L15 the other events of a purged run are not lost when it lapses instead', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await purgeOnce(t, 'a')
    t.expireLeases()
    const seen = [...(await t.claim()), ...(await t.claim())]
    assert.deepEqual(
      seen.map((lease) => t.names(lease)),
      [['b']],
    )
    assert.equal(await t.settle(run, done), 'lost')
  })

  rule('L15 a run between attempts goes on without the event, and another set of events has another id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne()
    await t.settleOk(run, retry(100))
    await purgeOnce(t, 'b')
    const rest = await t.claimOneAfter(100)
    assert.deepEqual([t.names(rest), rest.tries], [['a', 'c'], 1])
    assert.notEqual(rest.runId, run.runId)
  })

  rule('L15 a run between attempts that loses its only event ends, and the lane goes on', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne(), retry(100))
    await t.append('b')
    await purgeOnce(t, 'a')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L15 events left over by a run are due at its end, even if some of them are purged', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { quiet: 60_000, maxEvents: 3 })
    const run = await t.claimOne({ maxEvents: 1 })
    await purgeOnce(t, 'b')
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L15 a dead letter goes on without the event that was purged', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await t.settleOk(run, deadAndBlocking)
    await purgeOnce(t, 'a')
    const deadLetter = assertSingle(await t.findAll('dead'))
    assert.deepEqual(t.names(deadLetter.events), ['b'])
    await t.append('c')
    await t.assertNothingReady()
    await t.steerDeadLetter(deadLetter.id, 'retry')
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L15 a queued dead letter whose only event is purged does not run, and frees its lane', async (t) => {
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, deadAndBlocking)
    await t.steerDeadLetter(run.runId, 'retry')
    await t.append('b')
    assert.equal((await purgeOnce(t, 'a')).deadLetters, 1)
    assert.deepEqual(t.names(await t.claimOne()), ['b'])
  })

  rule('L15 a running dead letter is void when an event of it is purged; the rest stays dead', async (t) => {
    for (const [names, left] of [
      [['a'], []],
      [['b', 'c'], [['c']]],
    ] as const) {
      await t.appendEach(names)
      const run = await t.claimOne()
      await t.settleOk(run, dead)
      await t.steerDeadLetter(run.runId, 'retry')
      const live = await t.claimOne()
      await purgeOnce(t, names[0])
      assert.equal(await t.renew(live), 'purged')
      assert.equal(await t.settle(live, done), 'purged')
      assert.deepEqual(
        (await t.findAll('dead')).map((deadLetter) => t.names(deadLetter.events)),
        left,
      )
      await t.assertNothingReady()
    }
    assert.equal(await t.steerDeadLetter(assertSingle(await t.findAll('dead')).id, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L15 L16 waiting replays are removed, and the others of a live run of replays run anew', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.settleOk(await t.claimOne())
    const items = ['a', 'b', 'c'].map((name) => {
      return { kind: 'replay', replay: 'r', event: t.id(name), placements: [createPlacement()] } as const
    })
    await t.store.place({ routes: t.routes, items })
    await purgeOnce(t, 'a')
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['b', 'c'])
    await purgeOnce(t, 'b')
    assert.equal(await t.settle(run, done), 'purged')
    const rest = await t.claimOne()
    assert.deepEqual([t.names(rest), rest.rank], [['c'], 1])
    await t.settleOk(rest)
    await t.assertNothingReady()
  })

  rule('L15 L2 an unrouted event that is purged while it is leased is not placed', async (t) => {
    await t.append('a', { unrouted: [createUnrouted('outbox')] })
    const call = { n: 10, lease: 1_000, reasons: ['outbox'], flows: [] } as const
    const leased = assertSingle((await t.store.claimUnrouted(call)).unrouted)
    await purgeOnce(t, 'a')
    const items = [
      { kind: 'unrouted', id: leased.id, token: leased.token, placements: [createPlacement()], unrouted: [] },
    ] as const
    assert.notEqual(assertSingle((await t.store.place({ routes: t.routes, items })).results), 'placed')
    await t.assertNothingReady()
    t.clock.advance(1_000)
    assert.deepEqual((await t.store.claimUnrouted(call)).unrouted, [])
  })
}
