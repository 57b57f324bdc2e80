// L7: a run takes what waits, in order, within its caps; the batch is frozen, and settling removes exactly that.
import assert from 'node:assert/strict'
import { keys, type Suite } from './stage.ts'
import { done, place, retry } from './vocabulary.ts'

export const batches: Suite = (rule) => {
  rule('L7 a run takes its events in the order in which they entered the lane', async (t) => {
    await t.send(t.event('a', { quiet: 10 }), t.event('b', { quiet: 10 }), t.event('c', { quiet: 10 }))
    await t.append('d', { quiet: 10 })
    assert.deepEqual(t.names(await t.dueIn(10)), ['a', 'b', 'c', 'd'])
  })

  rule('L7 the order is that of arrival, whatever times and ids the events carry', async (t) => {
    const names = ['late', 'early', 'middle']
    const ids = ['zzz', 'aaa', 'mmm']
    for (const [n, name] of names.entries()) await t.append(name, { id: `${ids[n]}-${'0'.repeat(22)}`, quiet: 10 })
    assert.deepEqual(t.names(await t.dueIn(10)), names)
  })

  rule('L7 at most maxEvents', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd', 'e'])
    assert.deepEqual(t.names(await t.next({ maxEvents: 2 })), ['a', 'b'])
  })

  rule('L7 at most maxBytes', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.next({ maxBytes: 250 })), ['a', 'b'])
  })

  rule('L7 exactly maxBytes fits', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.next({ maxBytes: 200 })), ['a', 'b'])
  })

  rule('L7 at least one event, however big; and a small one behind a big one does not overtake it', async (t) => {
    await t.append('big', { body: 'x'.repeat(1_000) })
    await t.append('huge', { body: 'x'.repeat(2_000) })
    await t.append('small', { body: 'x' })
    assert.deepEqual(t.names(await t.next({ maxBytes: 100 })), ['big'])
  })

  rule('L7 what is left over is due at the end of the run, whatever its window', async (t) => {
    await t.appendEach(['a', 'b', 'c', 'd'], { quiet: 100, maxEvents: 4 })
    const run = await t.next({ maxEvents: 3 })
    t.clock.advance(10)
    await t.append('e', { quiet: 60_000 })
    await t.end(run, done, { whileRunning: 'window' })
    assert.deepEqual(t.names(await t.next()), ['d', 'e'])
  })

  rule('L7 what is left over gets a new ticket: it goes behind lanes that are ready', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { key: 'a' })
    t.clock.advance(1)
    await t.append('other', { key: 'b' })
    t.clock.advance(1)
    assert.deepEqual(await t.drain({ maxEvents: 1 }), ['a', 'b', 'a', 'a'])
  })

  rule('L7 what is left over stays behind the retries of its run', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.end(await t.next({ maxEvents: 2 }), retry(100))
    await t.nothing()
    const back = await t.dueIn(100)
    assert.deepEqual(t.names(back), ['a', 'b'])
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L7 a frozen batch keeps its events though the next claim has other caps', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    await t.end(await t.next({ maxEvents: 2 }), retry(0))
    assert.deepEqual(t.names(await t.next({ maxEvents: 1, maxBytes: 1 })), ['a', 'b'])
  })

  rule('L7 settling removes the events of the run and no others', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next()
    await t.appendEach(['c', 'd'])
    await t.end(run)
    const next = await t.next()
    assert.deepEqual(t.names(next), ['c', 'd'])
    await t.end(next)
    await t.nothing()
  })

  rule('L7 take last: the newest runs, the others end as superseded and are counted', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.next({ take: 'last' })
    assert.deepEqual([t.names(run), run.superseded], [['c'], 2])
    await t.end(run)
    await t.nothing()
    const passedOver = (await t.all('runs')).filter((record) => record.kind === 'superseded')
    assert.deepEqual(t.names(passedOver.flatMap((record) => record.events)).toSorted(), ['a', 'b'])
  })

  rule('L7 take first: the oldest runs, the others end as superseded', async (t) => {
    await t.appendEach(['a', 'b', 'c'])
    const run = await t.next({ take: 'first' })
    assert.deepEqual([t.names(run), run.superseded], [['a'], 2])
    await t.end(run)
    await t.nothing()
  })

  rule('L7 take looks at all that waits, before the caps', async (t) => {
    await t.appendEach(['a', 'b', 'c'], { body: 'x'.repeat(100) })
    assert.deepEqual(t.names(await t.next({ take: 'last', maxEvents: 1, maxBytes: 100 })), ['c'])
  })

  rule('L7 take last is the last at the claim: a retry keeps it, and what came since runs after it', async (t) => {
    await t.appendEach(['a', 'b'])
    await t.end(await t.next({ take: 'last' }), retry(10))
    await t.appendEach(['c', 'd'])
    t.clock.advance(10)
    const back = await t.next({ take: 'last' })
    assert.deepEqual(t.names(back), ['b'])
    await t.end(back)
    assert.deepEqual(t.names(await t.next({ take: 'last' })), ['d'])
  })

  rule('L7 take ends events of its own rank only', async (t) => {
    await t.append('old', { key: 'elsewhere' })
    await t.end(await t.next())
    const items = [{ kind: 'replay', replay: 'r', event: t.id('old'), places: [place()] }] as const
    await t.store.place({ routes: t.routes, items })
    await t.appendEach(['a', 'b'])
    const run = await t.next({ take: 'last' })
    assert.deepEqual([t.names(run), run.superseded], [['b'], 1])
    await t.end(run)
    assert.deepEqual(t.names(await t.next({ take: 'last' })), ['old'])
  })

  rule('L7 a big lane is drained whole, in order, nothing twice', async (t) => {
    const names = Array.from({ length: 100 }, (_, n) => `e${n}`)
    await t.send(...names.map((name) => t.event(name)))
    const seen: string[] = []
    for (let runs = await t.claim({ maxEvents: 7 }); runs.length > 0; runs = await t.claim({ maxEvents: 7 })) {
      assert.deepEqual(keys(runs), ['k'])
      for (const run of runs) {
        seen.push(...t.names(run))
        await t.end(run)
      }
    }
    assert.deepEqual(seen, names)
  })

  rule('L7 an event carries what was stored with it and when it arrived', async (t) => {
    const arrived = t.clock.now()
    const event = t.event('a', { subject: 's', attributes: '{"x":1}', tenant: 'acme', type: 'ping', source: 'bank' })
    await t.send(event)
    t.clock.advance(50)
    const run = await t.next()
    const { id, source, type, time, tenant, subject, attributes, body } = event
    const [claimed] = run.events
    assert.deepEqual(
      { ...claimed, body: Buffer.from(claimed?.body ?? []) },
      { id, source, type, time, tenant, subject, attributes, body: Buffer.from(body), arrived },
    )
    assert.equal(run.tenant, 'acme')
  })
}
