// L15: what is purged is gone at once, in every state; a live run ends by its own settlement, and dedupe remembers.
import assert from 'node:assert/strict'
import { laneId } from '../../model/identity.ts'
import type { PurgeCall, PurgeReply } from '../contract/index.ts'
import { keys, only, type Stage, type Suite } from './stage.ts'
import { DAY, SECOND, blocking, claimOf, dead, done, mark, place, retry } from './vocabulary.ts'

async function purged(t: Stage, what: PurgeCall['what'], n = 1_000): Promise<PurgeReply> {
  return t.store.purge({ what, n })
}

const lanes = (...of: readonly string[]): PurgeCall['what'] => ({
  kind: 'lanes',
  ids: of.map((key) => laneId('flow', key)),
})

/** Whether the bytes of these events can still be had. */
async function has(t: Stage, ...names: readonly string[]): Promise<readonly boolean[]> {
  const { bodies } = await t.store.bodies({ events: names.map((name) => t.id(name)) })
  return bodies.map((body) => body !== undefined)
}

/** Each event that waits in a run of its own: with one call the last run ends and the next begins. */
async function oneByOne(t: Stage): Promise<void> {
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const claim = [claimOf({ maxEvents: 1 })]
  for (let { claimed } = await t.turn({ claim }); claimed.length > 0;) {
    const settle = claimed.map(({ lane, token }) => ({ lane, token, ...end }))
    claimed = (await t.turn({ settle, claim })).claimed
  }
}

export const purge: Suite = (rule) => {
  rule('L15 by lane: what waits, what is between attempts and what is done is gone', async (t) => {
    await t.append('done')
    await t.end(await t.next())
    await t.append('failed')
    await t.end(await t.next(), retry(100))
    await t.append('waiting', { quiet: 100 })
    await t.append('other', { key: 'other', quiet: 100 })
    const reply = await purged(t, lanes('k'))
    assert.deepEqual([reply.events, reply.more], [3, false])
    assert.deepEqual(await has(t, 'done', 'failed', 'waiting', 'other'), [false, false, false, true])
    t.clock.advance(10_000)
    assert.deepEqual(keys(await t.claim()), ['other'])
  })

  rule('L15 by lane: dead letters and finished runs go too, and a lane that was blocked is free', async (t) => {
    await t.append('done')
    await t.end(await t.next())
    await t.append('dead')
    await t.end(await t.next(), blocking)
    const reply = await purged(t, lanes('k'))
    assert.deepEqual([reply.letters, reply.runs >= 1], [1, true])
    assert.deepEqual(await t.all('dead'), [])
    assert.deepEqual(await t.all('runs'), [])
    assert.equal((await t.store.stats()).letters, 0)
    await t.append('new')
    assert.deepEqual(t.names(await t.next()), ['new'])
  })

  rule('L15 by lane: a body shared with another lane stays until that place ends', async (t) => {
    await t.append('shared', { keys: ['x', 'y'] })
    await purged(t, lanes('x'))
    assert.deepEqual(await has(t, 'shared'), [true])
    const run = await t.next()
    assert.deepEqual([run.key, t.names(run)], ['y', ['shared']])
    assert.equal(Buffer.from(run.events[0]?.body ?? []).toString(), 'shared')
    await t.end(run)
    await t.upkeep()
    assert.deepEqual(await has(t, 'shared'), [false])
  })

  rule('L15 by lane: however many bodies others still need, one that nobody needs any more goes', async (t) => {
    await t.send(
      ...Array.from({ length: 600 }, (_, n) => t.event(`needed ${n}`, { keys: ['x', 'y'], quiet: 400 * DAY })),
    )
    await purged(t, lanes('x'))
    await t.append('shared', { keys: ['v', 'w'] })
    await purged(t, lanes('v'))
    await t.end(await t.next())
    await t.upkeep()
    assert.deepEqual(await has(t, 'shared', 'needed 0', 'needed 599'), [false, true, true])
  })

  rule('L15 by lane: a body shared by two lanes is gone when both are purged, one after the other', async (t) => {
    await t.append('waiting', { keys: ['x', 'y'], quiet: 60_000 })
    await t.append('done', { keys: ['v', 'w'] })
    for (const run of await t.claim()) await t.end(run)
    for (const key of ['x', 'y', 'v', 'w']) await purged(t, lanes(key))
    assert.deepEqual(await has(t, 'waiting', 'done'), [false, false])
  })

  rule(
    'L15 by lane: a body purged in one lane and done in the other goes at once when that one is purged',
    async (t) => {
      await t.append('shared', { keys: ['x', 'y'] })
      await purged(t, lanes('x'))
      await t.end(await t.next())
      await purged(t, lanes('y'))
      assert.deepEqual(await has(t, 'shared'), [false])
    },
  )

  rule('L15 L23 by lane: records of a thousand runs whose events are gone by age hide none before them', async (t) => {
    await t.append('kept', { source: 'bank', subject: 'ada' })
    await t.end(await t.next())
    await t.send(
      ...Array.from({ length: 1_001 }, (_, n) => t.event(`noise ${n}`, { source: 'noise', dedupeFor: SECOND })),
    )
    await oneByOne(t)
    t.clock.advance(DAY)
    assert.equal((await t.upkeep({ events: { noise: SECOND } })).events, 1_001)
    assert.deepEqual(await has(t, 'noise 0', 'kept'), [false, true])
    let events = 0
    for (let more = true, steps = 0; more; steps++) {
      assert.ok(steps < 20, 'it comes to an end')
      const reply = await purged(t, lanes('k'), 10)
      events += reply.events
      more = reply.more
    }
    assert.equal(events, 1)
    assert.deepEqual(await has(t, 'kept'), [false])
    assert.deepEqual(await t.all('runs'), [])
  })

  rule('L15 by tenant: every event of the tenant, shared or not, and nothing of others', async (t) => {
    await t.append('a', { tenant: 'acme', keys: ['x', 'shared'] })
    await t.append('b', { tenant: 'globex', key: 'shared' })
    await t.append('c', { tenant: 'acme', marks: [mark('outbox')] })
    const reply = await purged(t, { kind: 'tenant', tenant: 'acme' })
    assert.equal(reply.events, 2)
    assert.deepEqual(await has(t, 'a', 'b', 'c'), [false, true, false])
    assert.deepEqual(
      (await t.claim()).map((run) => [run.key, t.names(run)]),
      [['shared', ['b']]],
    )
    const marks = await t.store.unrouted({ n: 10, lease: 1_000, reasons: ['outbox'], flows: [] })
    assert.deepEqual(marks.marks, [])
  })

  rule('L15 by tenant: its dead letters go', async (t) => {
    await t.append('a', { tenant: 'acme', key: 'a' })
    await t.append('b', { tenant: 'globex', key: 'b' })
    for (const run of await t.claim()) await t.end(run, dead)
    assert.equal((await purged(t, { kind: 'tenant', tenant: 'acme' })).letters, 1)
    assert.deepEqual(
      (await t.all('dead')).map((letter) => letter.tenant),
      ['globex'],
    )
  })

  rule('L15 by event: that event is gone everywhere, its neighbours stay in their order', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { keys: ['x', 'y'], quiet: 10 })
    assert.equal((await purged(t, { kind: 'event', id: t.id('b') })).events, 1)
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
    await purged(t, { kind: 'event', id: t.id('a') })
    t.clock.advance(1_000)
    await t.nothing()
    assert.equal((await purged(t, { kind: 'event', id: t.id('a') })).events, 0)
  })

  rule('L15 L10 the identity stays known: the same event again is a duplicate', async (t) => {
    await t.append('a', { dedupe: 'x', body: '-', tenant: 'acme' })
    await t.append('b', { dedupe: 'y', body: '-', tenant: 'acme', key: 'b' })
    await purged(t, lanes('k'))
    await purged(t, { kind: 'tenant', tenant: 'acme' })
    assert.deepEqual(await t.append('a2', { dedupe: 'x', body: '-', tenant: 'acme' }), {
      kind: 'duplicate',
      of: t.id('a'),
    })
    assert.deepEqual(await t.append('b2', { dedupe: 'y', body: '-', tenant: 'acme' }), {
      kind: 'duplicate',
      of: t.id('b'),
    })
    await t.nothing()
  })

  rule('L15 L16 a purged event cannot be replayed', async (t) => {
    await t.append('a')
    await t.end(await t.next())
    await purged(t, lanes('k'))
    const items = [{ kind: 'replay', replay: 'r', event: t.id('a'), places: [place()] }] as const
    assert.deepEqual((await t.store.place({ routes: t.routes, items })).results, ['gone'])
    await t.nothing()
  })

  rule('L15 a purge in small steps ends with everything gone', async (t) => {
    for (let n = 0; n < 10; n++) await t.append(`e${n}`, { tenant: 'acme', key: `k${n % 3}`, quiet: 10 })
    let events = 0
    for (let more = true, steps = 0; more; steps++) {
      assert.ok(steps < 20, 'it comes to an end')
      const reply = await purged(t, { kind: 'tenant', tenant: 'acme' }, 3)
      assert.ok(reply.events <= 3)
      events += reply.events
      more = reply.more
    }
    assert.equal(events, 10)
    t.clock.advance(1_000)
    await t.nothing()
  })

  rule('L15 a lane that was held or paused is purged like any other', async (t) => {
    await t.append('a')
    await t.hold('k', 60_000)
    assert.equal((await purged(t, lanes('k'))).events, 1)
    t.clock.advance(60_000)
    await t.nothing()
  })

  rule('L15 the record of a purged event says so and has no bytes', async (t) => {
    await t.append('a', { request: 'POST /in/shop' })
    await purged(t, lanes('k'))
    const record = await t.record('a')
    if (record !== undefined) {
      assert.equal(record.purged, true)
      assert.deepEqual([record.body?.length ?? 0, record.request?.length ?? 0], [0, 0])
    }
    assert.equal(only(await has(t, 'a')), false)
  })
}
