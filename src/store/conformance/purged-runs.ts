// L15, the hard half: what is purged under a run that is live, between attempts or dead, and what must survive beside it.
import assert from 'node:assert/strict'
import { laneId } from '../../model/identity.ts'
import type { PurgeCall, PurgeReply } from '../contract/index.ts'
import { only, type Stage, type Suite } from './stage.ts'
import { blocking, claimOf, dead, done, mark, place, released, retry } from './vocabulary.ts'

const lane: PurgeCall['what'] = { kind: 'lanes', ids: [laneId('flow', 'k')] }

async function purged(t: Stage, what: PurgeCall['what'] | string): Promise<PurgeReply> {
  return t.store.purge({ what: typeof what === 'string' ? { kind: 'event', id: t.id(what) } : what, n: 1_000 })
}

export const purgedRuns: Suite = (rule) => {
  for (const [by, what] of [
    ['lane', (): PurgeCall['what'] => lane],
    ['tenant', (): PurgeCall['what'] => ({ kind: 'tenant', tenant: 'acme' })],
    ['event', (t: Stage): PurgeCall['what'] => ({ kind: 'event', id: t.id('a') })],
  ] as const) {
    rule(`L15 by ${by}: a live run keeps its lease, hears of it, and only its settlement frees the lane`, async (t) => {
      await t.append('a', { tenant: 'acme' })
      const run = await t.next()
      await purged(t, what(t))
      assert.deepEqual((await t.store.bodies({ events: [t.id('a')] })).bodies, [undefined])
      await t.append('b')
      await t.nothing()
      assert.equal(await t.renew(run), 'purged')
      assert.equal(await t.renew(run, { commit: true }), 'purged')
      await t.nothing()
      assert.equal(await t.settle(run, retry(0)), 'purged')
      const next = await t.next()
      assert.deepEqual(t.names(next), ['b'])
      assert.notEqual(next.run, run.run)
    })
  }

  rule('L15 a run that was purged ends whatever it says: no letter, no retry, nothing in its lane', async (t) => {
    for (const outcome of [done, dead, blocking, retry(0), released, { kind: 'cancelled' }] as const) {
      const name = `${outcome.kind} ${'block' in outcome && outcome.block}`
      await t.append(name)
      const run = await t.next()
      await purged(t, name)
      assert.equal(await t.settle(run, outcome), 'purged')
      await t.nothing()
    }
    assert.deepEqual(await t.all('dead'), [])
  })

  rule('L15 L2b a run that was purged publishes nothing', async (t) => {
    await t.append('a')
    const run = await t.next()
    await purged(t, 'a')
    assert.equal(await t.settle(run, done, { publish: [t.event('p', { flow: 'next' })] }), 'purged')
    await t.nothing({ flow: 'next' })
    assert.equal(await t.record('p'), undefined)
  })

  rule('L15 a repeated claim gives a purged run with an empty batch', async (t) => {
    await t.append('a')
    const call = { process: 'p1', request: 1, claim: [claimOf()] }
    await t.turn(call)
    await purged(t, lane)
    const { claimed } = await t.turn(call)
    assert.deepEqual(
      claimed.map((run) => run.events),
      [[]],
    )
  })

  rule('L15 a purged run that lapses gives none of its events to the next claim', async (t) => {
    await t.append('a')
    await t.next()
    await purged(t, lane)
    await t.append('b')
    t.lapse()
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
    'L15 a live run of several events is void when one is purged; the others run anew, under another id',
    async (t) => {
      await t.appendEach(['a', 'b'])
      const run = await t.next()
      await purged(t, 'a')
      assert.equal(await t.renew(run), 'purged')
      assert.equal(await t.settle(run, done), 'purged')
      const next = await t.next()
      assert.deepEqual(t.names(next), ['b'])
      assert.notEqual(next.run, run.run)
    },
  )

  rule('L15 the others of a purged run are not lost when it lapses instead', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await purged(t, 'a')
    t.lapse()
    const seen = [...(await t.claim()), ...(await t.claim())]
    assert.deepEqual(
      seen.map((lease) => t.names(lease)),
      [['b']],
    )
    assert.equal(await t.settle(run, done), 'lost')
  })

  rule('L15 a run between attempts goes on without the event, and another set of events has another id', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.next()
    await t.end(run, retry(100))
    await purged(t, 'b')
    const rest = await t.dueIn(100)
    assert.deepEqual([t.names(rest), rest.tries], [['a', 'c'], 1])
    assert.notEqual(rest.run, run.run)
  })

  rule('L15 a run between attempts that loses its only event ends, and the lane goes on', async (t) => {
    await t.append('a')
    await t.end(await t.next(), retry(100))
    await t.append('b')
    await purged(t, 'a')
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L15 what a run left over is still due at its end when some of it is purged', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { quiet: 60_000, maxEvents: 3 })
    const run = await t.next({ maxEvents: 1 })
    await purged(t, 'b')
    await t.end(run)
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L15 a dead letter goes on without the event that was purged', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await t.end(run, blocking)
    await purged(t, 'a')
    const letter = only(await t.all('dead'))
    assert.deepEqual(t.names(letter.events), ['b'])
    await t.append('c')
    await t.nothing()
    await t.steerDead(letter.id, 'retry')
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L15 a queued dead letter whose only event is purged does not run, and frees its lane', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, blocking)
    await t.steerDead(run.run, 'retry')
    await t.append('b')
    assert.equal((await purged(t, 'a')).letters, 1)
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L15 a dead letter that runs is void when an event of it is purged; what is left is dead still', async (t) => {
    for (const [names, left] of [
      [['a'], []],
      [['b', 'c'], [['c']]],
    ] as const) {
      await t.appendEach(names)
      const run = await t.next()
      await t.end(run, dead)
      await t.steerDead(run.run, 'retry')
      const live = await t.next()
      await purged(t, names[0])
      assert.equal(await t.renew(live), 'purged')
      assert.equal(await t.settle(live, done), 'purged')
      assert.deepEqual(
        (await t.all('dead')).map((letter) => t.names(letter.events)),
        left,
      )
      await t.nothing()
    }
    assert.equal(await t.steerDead(only(await t.all('dead')).id, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L15 L16 replays: what waits goes, and of a live run of replays the others run anew', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.end(await t.next())
    const items = ['a', 'b', 'c'].map((name) => {
      return { kind: 'replay', replay: 'r', event: t.id(name), places: [place()] } as const
    })
    await t.store.place({ routes: t.routes, items })
    await purged(t, 'a')
    const run = await t.next()
    assert.deepEqual(t.names(run), ['b', 'c'])
    await purged(t, 'b')
    assert.equal(await t.settle(run, done), 'purged')
    const rest = await t.next()
    assert.deepEqual([t.names(rest), rest.rank], [['c'], 1])
    await t.end(rest)
    await t.nothing()
  })

  rule('L15 L2 a mark that is leased when its event is purged places nothing', async (t) => {
    await t.append('a', { marks: [mark('outbox')] })
    const call = { n: 10, lease: 1_000, reasons: ['outbox'], flows: [] } as const
    const leased = only((await t.store.unrouted(call)).marks)
    await purged(t, 'a')
    const items = [{ kind: 'mark', id: leased.id, token: leased.token, places: [place()], marks: [] }] as const
    assert.notEqual(only((await t.store.place({ routes: t.routes, items })).results), 'placed')
    await t.nothing()
    t.clock.advance(1_000)
    assert.deepEqual((await t.store.unrouted(call)).marks, [])
  })
}
