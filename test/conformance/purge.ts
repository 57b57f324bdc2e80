// L15: purged data is gone at once, in every state. A live run ends by its own settlement, and dedupe remembers the events.
import assert from 'node:assert/strict'
import { NEVER } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import type { PurgeCall, PurgeReply, PurgeScope } from '../../src/store/contract/index.ts'
import { getKeys, assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import {
  DAY,
  SECOND,
  deadAndBlocking,
  createClaimRequest,
  dead,
  done,
  createUnrouted,
  createPlacement,
  retry,
} from './builders.ts'

async function purgeAll(t: ConformanceStage, what: PurgeCall['what'], n = 1_000): Promise<PurgeReply> {
  return t.store.purge({ what, n })
}

const lanes = (...of: readonly string[]): PurgeCall['what'] => ({
  kind: 'lanes',
  ids: of.map((key) => laneId('flow', key)),
})

/** Whether the bytes of the given events can still be read. */
async function readBodiesPresent(t: ConformanceStage, ...names: readonly string[]): Promise<readonly boolean[]> {
  const { bodies } = await t.store.readBodies({ events: names.map((name) => t.id(name)) })
  return bodies.map((body) => body !== undefined)
}

/** Runs each waiting event in a run of its own: each call settles the last run and claims the next. */
async function runOneByOne(t: ConformanceStage): Promise<void> {
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const claim = [createClaimRequest({ maxEvents: 1 })]
  for (let { claimed } = await t.settleAndClaim({ claim }); claimed.length > 0;) {
    const settle = claimed.map(({ lane, token }) => ({ lane, token, ...end }))
    claimed = (await t.settleAndClaim({ settle, claim })).claimed
  }
}

export const purge: Suite = (rule) => {
  rule('L15 by lane: events that wait, are between attempts or are done are gone', async (t) => {
    await t.append('done')
    await t.settleOk(await t.claimOne())
    await t.append('failed')
    await t.settleOk(await t.claimOne(), retry(100))
    await t.append('waiting', { quiet: 100 })
    await t.append('other', { key: 'other', quiet: 100 })
    const reply = await purgeAll(t, lanes('k'))
    assert.deepEqual([reply.events, reply.more], [3, false])
    assert.deepEqual(await readBodiesPresent(t, 'done', 'failed', 'waiting', 'other'), [false, false, false, true])
    t.clock.advance(10_000)
    assert.deepEqual(getKeys(await t.claim()), ['other'])
  })

  rule('L15 by lane: dead letters and finished runs go too, and a lane that was blocked is free', async (t) => {
    await t.append('done')
    await t.settleOk(await t.claimOne())
    await t.append('dead')
    await t.settleOk(await t.claimOne(), deadAndBlocking)
    const reply = await purgeAll(t, lanes('k'))
    assert.deepEqual([reply.deadLetters, reply.runs >= 1], [1, true])
    assert.deepEqual(await t.findAll('dead'), [])
    assert.deepEqual(await t.findAll('runs'), [])
    assert.equal((await t.store.stats()).deadLetters, 0)
    await t.append('new')
    assert.deepEqual(t.names(await t.claimOne()), ['new'])
  })

  rule('L15 by lane: a body shared with another lane stays until that placement ends', async (t) => {
    await t.append('shared', { keys: ['x', 'y'] })
    await purgeAll(t, lanes('x'))
    assert.deepEqual(await readBodiesPresent(t, 'shared'), [true])
    const run = await t.claimOne()
    assert.deepEqual([run.key, t.names(run)], ['y', ['shared']])
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'shared')
    await t.settleOk(run)
    await t.maintain()
    assert.deepEqual(await readBodiesPresent(t, 'shared'), [false])
  })

  rule('L15 by lane: a body that no lane needs is removed, however many others are needed', async (t) => {
    await t.appendEvents(
      ...Array.from({ length: 600 }, (_, n) => t.event(`needed ${n}`, { keys: ['x', 'y'], quiet: 400 * DAY })),
    )
    await purgeAll(t, lanes('x'))
    await t.append('shared', { keys: ['v', 'w'] })
    await purgeAll(t, lanes('v'))
    await t.settleOk(await t.claimOne())
    await t.maintain()
    assert.deepEqual(await readBodiesPresent(t, 'shared', 'needed 0', 'needed 599'), [false, true, true])
  })

  rule('L15 by lane: the record of a run goes, though one of its events had lost its bytes before', async (t) => {
    await t.append('shared', { keys: ['x', 'y'] })
    await t.append('own', { key: 'x' })
    await t.drain()
    await purgeAll(t, lanes('y'))
    assert.deepEqual(await readBodiesPresent(t, 'shared', 'own'), [false, true])
    const reply = await purgeAll(t, lanes('x'))
    assert.deepEqual([reply.events, reply.runs, reply.more], [1, 1, false])
    assert.deepEqual(await t.findAll('runs'), [])
  })

  rule('L15 by lane: a body shared by two lanes is gone when both are purged, one after the other', async (t) => {
    await t.append('waiting', { keys: ['x', 'y'], quiet: 60_000 })
    await t.append('done', { keys: ['v', 'w'] })
    for (const run of await t.claim()) await t.settleOk(run)
    for (const key of ['x', 'y', 'v', 'w']) await purgeAll(t, lanes(key))
    assert.deepEqual(await readBodiesPresent(t, 'waiting', 'done'), [false, false])
  })

  rule(
    'L15 by lane: a body purged in one lane and done in the other is removed at once when the other is purged',
    async (t) => {
      await t.append('shared', { keys: ['x', 'y'] })
      await purgeAll(t, lanes('x'))
      await t.settleOk(await t.claimOne())
      await purgeAll(t, lanes('y'))
      assert.deepEqual(await readBodiesPresent(t, 'shared'), [false])
    },
  )

  rule('L15 L23 by lane: records of a thousand runs whose events are gone by age hide none before them', async (t) => {
    await t.append('kept', { source: 'bank', subject: 'ada' })
    await t.settleOk(await t.claimOne())
    await t.appendEvents(
      ...Array.from({ length: 1_001 }, (_, n) => t.event(`noise ${n}`, { source: 'noise', dedupeFor: SECOND })),
    )
    await runOneByOne(t)
    t.clock.advance(DAY)
    assert.equal((await t.maintain({ events: { noise: SECOND } })).events, 1_001)
    assert.deepEqual(await readBodiesPresent(t, 'noise 0', 'kept'), [false, true])
    let events = 0
    for (let more = true, steps = 0; more; steps++) {
      assert.ok(steps < 20, 'it comes to an end')
      const reply = await purgeAll(t, lanes('k'), 10)
      events += reply.events
      more = reply.more
    }
    assert.equal(events, 1)
    assert.deepEqual(await readBodiesPresent(t, 'kept'), [false])
    assert.deepEqual(await t.findAll('runs'), [])
  })

  rule('L15 by tenant: every event of the tenant, shared or not, and nothing of others', async (t) => {
    await t.append('a', { tenant: 'acme', keys: ['x', 'shared'] })
    await t.append('b', { tenant: 'globex', key: 'shared' })
    await t.append('c', { tenant: 'acme', unrouted: [createUnrouted('outbox')] })
    const purged = await purgeAll(t, { kind: 'tenant', tenant: 'acme' })
    assert.equal(purged.events, 2)
    assert.deepEqual(await readBodiesPresent(t, 'a', 'b', 'c'), [false, true, false])
    assert.deepEqual(
      (await t.claim()).map((run) => [run.key, t.names(run)]),
      [['shared', ['b']]],
    )
    const reply = await t.store.claimUnrouted({ n: 10, lease: 1_000, reasons: ['outbox'], flows: [] })
    assert.deepEqual(reply.unrouted, [])
  })

  rule('L15 by tenant: its dead letters go', async (t) => {
    await t.append('a', { tenant: 'acme', key: 'a' })
    await t.append('b', { tenant: 'globex', key: 'b' })
    for (const run of await t.claim()) await t.settleOk(run, dead)
    assert.equal((await purgeAll(t, { kind: 'tenant', tenant: 'acme' })).deadLetters, 1)
    assert.deepEqual(
      (await t.findAll('dead')).map((deadLetter) => deadLetter.tenant),
      ['globex'],
    )
  })

  rule('L15 by subject: every event of the subject, of all tenants or of one, and nothing of others', async (t) => {
    await t.append('a', { subject: 'ada', tenant: 'acme', keys: ['x', 'shared'] })
    await t.append('b', { subject: 'bob', tenant: 'acme', key: 'shared' })
    await t.append('c', { subject: 'ada', tenant: 'globex', key: 'c' })
    await t.append('d', { subject: 'ada', key: 'd' })
    await t.append('e', { subject: 'ada', tenant: 'acme', unrouted: [createUnrouted('outbox')] })
    const ofAcme = await purgeAll(t, { kind: 'subject', subject: 'ada', tenant: 'acme' })
    assert.equal(ofAcme.events, 2)
    for (const nobody of [
      { subject: '', tenant: undefined },
      { subject: 'ada', tenant: '' },
    ]) {
      assert.equal((await purgeAll(t, { kind: 'subject', ...nobody })).events, 0)
    }
    assert.equal((await purgeAll(t, { kind: 'tenant', tenant: '' })).events, 0)
    assert.deepEqual(await readBodiesPresent(t, 'a', 'b', 'c', 'd', 'e'), [false, true, true, true, false])
    assert.equal((await purgeAll(t, { kind: 'subject', subject: 'ada', tenant: undefined })).events, 2)
    assert.deepEqual(await readBodiesPresent(t, 'a', 'b', 'c', 'd', 'e'), [false, true, false, false, false])
    assert.equal((await t.getEventRecord('a'))?.subject, '')
    assert.deepEqual(
      (await t.claim()).map((run) => [run.key, t.names(run)]),
      [['shared', ['b']]],
    )
    const reply = await t.store.claimUnrouted({ n: 10, lease: 1_000, reasons: ['outbox'], flows: [] })
    assert.deepEqual(reply.unrouted, [])
  })

  for (const [by, of] of [
    ['tenant', (): PurgeScope => ({ tenant: 'acme' })],
    ['subject', (): PurgeScope => ({ subject: 'ada', tenant: 'acme' })],
    ['event', (t: ConformanceStage): PurgeScope => ({ id: t.id('old') })],
  ] as const) {
    rule(`L15 by ${by}: records of runs go, however many runs of the lane are newer, and their texts`, async (t) => {
      await t.append('old', { tenant: 'acme', subject: 'ada' })
      await t.append('beside', { tenant: 'globex', subject: 'bob' })
      const run = await t.claimOne()
      // What is left of this run is another run, which keeps the error.
      const attempt = { at: t.clock.now(), ms: 1, error: 'ada is not known' }
      const outcome = {
        kind: 'partial',
        after: 0,
        reason: '',
        block: false,
        retry: [t.id('beside')],
        dead: [],
      } as const
      await t.settleOk(run, outcome, { attempt })
      await t.settleOk(await t.claimOne())
      const newer = Array.from({ length: 40 }, (_, n) => t.event(`newer ${n}`, { tenant: 'globex', subject: 'bob' }))
      await t.appendEvents(...newer)
      await runOneByOne(t)
      let removed = 0
      for (let before: number | undefined = NEVER, steps = 0; before !== undefined; steps++) {
        assert.ok(steps < 30, 'it comes to an end')
        const what = { kind: 'runs', lane: run.lane, of: of(t), before } as const
        const reply: PurgeReply = await t.store.purge({ what, n: 10 })
        removed += reply.runs
        before = reply.more ? reply.before : undefined
      }
      assert.equal(removed, 1)
      const left = await t.findAll('runs')
      assert.deepEqual([left.length, left.flatMap(({ events }) => t.names(events)).includes('old')], [41, false])
      assert.doesNotMatch(JSON.stringify(left), /ada is not known/)
      assert.match(JSON.stringify(left), /Removed by a purge/)
    })
  }

  rule('L15 by event: that event is gone everywhere, its neighbours stay in their order', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { keys: ['x', 'y'], quiet: 10 })
    assert.equal((await purgeAll(t, { kind: 'event', id: t.id('b') })).events, 1)
    t.clock.advance(10)
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['x', ['a', 'c']],
        ['y', ['a', 'c']],
      ],
    )
  })

  rule('L15 by event: the only event that waited leaves nothing to run', async (t) => {
    await t.append('a', { quiet: 10 })
    await purgeAll(t, { kind: 'event', id: t.id('a') })
    t.clock.advance(1_000)
    await t.assertNothingReady()
    assert.equal((await purgeAll(t, { kind: 'event', id: t.id('a') })).events, 0)
  })

  rule('L15 L10 the identity stays known: the same event again is a duplicate', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-', tenant: 'acme' })
    await t.append('b', { dedupe: 'y', body: '-', tenant: 'acme', key: 'b' })
    await purgeAll(t, lanes('k'))
    await purgeAll(t, { kind: 'tenant', tenant: 'acme' })
    assert.deepEqual(await t.append('a2', { dedupe: 'x', body: '-', tenant: 'acme' }), {
      kind: 'duplicate',
      of: t.id('a'),
    })
    assert.deepEqual(await t.append('b2', { dedupe: 'y', body: '-', tenant: 'acme' }), {
      kind: 'duplicate',
      of: t.id('b'),
    })
    await t.assertNothingReady()
  })

  rule('L15 L16 a purged event cannot be replayed', async (t) => {
    await t.append('a')
    await t.settleOk(await t.claimOne())
    await purgeAll(t, lanes('k'))
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), placements: [createPlacement()] }] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['gone'])
    await t.assertNothingReady()
  })

  rule('L15 a purge in small steps ends with everything gone', async (t) => {
    for (let n = 0; n < 10; n++) await t.append(`e${n}`, { tenant: 'acme', key: `k${n % 3}`, quiet: 10 })
    let events = 0
    for (let more = true, steps = 0; more; steps++) {
      assert.ok(steps < 20, 'it comes to an end')
      const reply = await purgeAll(t, { kind: 'tenant', tenant: 'acme' }, 3)
      assert.ok(reply.events <= 3)
      events += reply.events
      more = reply.more
    }
    assert.equal(events, 10)
    t.clock.advance(1_000)
    await t.assertNothingReady()
  })

  rule('L15 a lane that was held or paused is purged like any other', async (t) => {
    await t.append('a')
    await t.hold('k', 60_000)
    assert.equal((await purgeAll(t, lanes('k'))).events, 1)
    t.clock.advance(60_000)
    await t.assertNothingReady()
  })

  rule('L15 the record of a purged event shows the purge and has no bytes', async (t) => {
    await t.append('a', { request: 'POST /in/shop' })
    await purgeAll(t, lanes('k'))
    const record = await t.getEventRecord('a')
    if (record !== undefined) {
      assert.equal(record.purged, true)
      assert.deepEqual([record.body?.length ?? 0, record.request?.length ?? 0], [0, 0])
    }
    assert.equal(assertSingle(await readBodiesPresent(t, 'a')), false)
  })
}
