// L7: a run takes the waiting events in order, within its caps. The batch is frozen, and settling removes exactly its events.
import assert from 'node:assert/strict'
import { getKeys, type Suite } from './stage.ts'
import { done, createPlacement, retry } from './builders.ts'

export const batches: Suite = (rule) => {
  rule('L7 a run takes its events in the order in which they entered the lane', async (t) => {
    await t.appendEvents(t.event('a', { quiet: 10 }), t.event('b', { quiet: 10 }), t.event('c', { quiet: 10 }))
    await t.append('d', { quiet: 10 })
    assert.deepEqual(t.names(await t.claimOneAfter(10)), ['a', 'b', 'c', 'd'])
  })

  rule('L7 the order is that of arrival, regardless of the times and ids of the events', async (t) => {
    const names = ['late', 'early', 'middle']
    const ids = ['zzz', 'aaa', 'mmm']
    for (const [n, name] of names.entries()) await t.append(name, { id: `${ids[n]}-${'0'.repeat(22)}`, quiet: 10 })
    assert.deepEqual(t.names(await t.claimOneAfter(10)), names)
  })

  rule('L7 at most maxEvents', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd', 'e'])
    assert.deepEqual(t.names(await t.claimOne({ maxEvents: 2 })), ['a', 'b'])
  })

  rule('L7 at most maxBytes', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.claimOne({ maxBytes: 250 })), ['a', 'b'])
  })

  rule('L7 exactly maxBytes fits', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.claimOne({ maxBytes: 200 })), ['a', 'b'])
  })

  rule('L7 at least one event, however big; and a small one behind a big one does not overtake it', async (t) => {
    await t.append('big', { body: 'x'.repeat(1_000) })
    await t.append('huge', { body: 'x'.repeat(2_000) })
    await t.append('small', { body: 'x' })
    assert.deepEqual(t.names(await t.claimOne({ maxBytes: 100 })), ['big'])
  })

  rule('L7 events left over are due at the end of the run, regardless of their window', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd'], { quiet: 100, maxEvents: 4 })
    const run = await t.claimOne({ maxEvents: 3 })
    t.clock.advance(10)
    await t.append('e', { quiet: 60_000 })
    await t.settleOk(run, done, { whileRunning: 'window' })
    assert.deepEqual(t.names(await t.claimOne()), ['d', 'e'])
  })

  rule('L7 events left over get a new ticket, behind lanes that are ready', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { key: 'a' })
    t.clock.advance(1)
    await t.append('other', { key: 'b' })
    t.clock.advance(1)
    assert.deepEqual(await t.drain({ maxEvents: 1 }), ['a', 'b', 'a', 'a'])
  })

  rule('L7 events left over stay behind the retries of their run', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.settleOk(await t.claimOne({ maxEvents: 2 }), retry(100))
    await t.assertNothingReady()
    const back = await t.claimOneAfter(100)
    assert.deepEqual(t.names(back), ['a', 'b'])
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne()), ['c'])
  })

  rule('L7 a frozen batch keeps its events though the next claim has other caps', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.settleOk(await t.claimOne({ maxEvents: 2 }), retry(0))
    assert.deepEqual(t.names(await t.claimOne({ maxEvents: 1, maxBytes: 1 })), ['a', 'b'])
  })

  rule('L7 settling removes the events of the run and no others', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne()
    await t.appendEach(['c', 'd'])
    await t.settleOk(run)
    const next = await t.claimOne()
    assert.deepEqual(t.names(next), ['c', 'd'])
    await t.settleOk(next)
    await t.assertNothingReady()
  })

  rule('L7 take last: the newest runs, the others end as superseded and are counted', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne({ take: 'last' })
    assert.deepEqual([t.names(run), run.superseded], [['c'], 2])
    await t.settleOk(run)
    await t.assertNothingReady()
    const passedOver = (await t.findAll('runs')).filter((record) => record.kind === 'superseded')
    assert.deepEqual(t.names(passedOver.flatMap((record) => record.events)).toSorted(), ['a', 'b'])
  })

  rule('L7 take first: the oldest runs, the others end as superseded', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.claimOne({ take: 'first' })
    assert.deepEqual([t.names(run), run.superseded], [['a'], 2])
    await t.settleOk(run)
    await t.assertNothingReady()
  })

  rule('L7 take considers all waiting events, before the caps', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.claimOne({ take: 'last', maxEvents: 1, maxBytes: 100 })), ['c'])
  })

  rule('L7 take last is the last event at the claim: a retry keeps it, and later ones run after it', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.settleOk(await t.claimOne({ take: 'last' }), retry(10))
    await t.appendEach(['c', 'd'])
    t.clock.advance(10)
    const back = await t.claimOne({ take: 'last' })
    assert.deepEqual(t.names(back), ['b'])
    await t.settleOk(back)
    assert.deepEqual(t.names(await t.claimOne({ take: 'last' })), ['d'])
  })

  rule('L7 take ends events of its own rank only', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.settleOk(await t.claimOne())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), placements: [createPlacement()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.appendEach(['a', 'b'])
    const run = await t.claimOne({ take: 'last' })
    assert.deepEqual([t.names(run), run.superseded], [['b'], 1])
    await t.settleOk(run)
    assert.deepEqual(t.names(await t.claimOne({ take: 'last' })), ['old'])
  })

  rule('L7 a big lane is drained whole, in order, nothing twice', async (t) => {
    const names = Array.from({ length: 100 }, (_, n) => `e${n}`)
    await t.appendEvents(...names.map((name) => t.event(name)))
    const seen: string[] = []
    for (let runs = await t.claim({ maxEvents: 7 }); runs.length > 0; runs = await t.claim({ maxEvents: 7 })) {
      assert.deepEqual(getKeys(runs), ['k'])
      for (const run of runs) {
        seen.push(...t.names(run))
        await t.settleOk(run)
      }
    }
    assert.deepEqual(seen, names)
  })

  rule('L7 an event carries its stored fields and its arrival time', async (t) => {
    const arrived = t.clock.now()
    const event = t.event('a', { subject: 's', attributes: '{"x":1}', tenant: 'acme', type: 'ping', source: 'bank' })
    await t.appendEvents(event)
    t.clock.advance(50)
    const run = await t.claimOne()
    const { id, source, type, time, tenant, subject, attributes, body } = event
    const [claimed] = run.events
    assert.deepEqual(
      { ...claimed, body: Buffer.from(claimed?.body ?? []) },
      { id, source, type, time, tenant, subject, attributes, body: Buffer.from(body), arrived },
    )
    assert.equal(run.tenant, 'acme')
  })
}
