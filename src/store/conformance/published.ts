// L2b: what a handler publishes is stored in the commit of its settlement, once over all attempts, or not at all.
import assert from 'node:assert/strict'
import type { NewEvent, Settle } from '../contract/index.ts'
import { only, type Stage, type Suite } from './stage.ts'
import { blocking, bytes, done, retry } from './vocabulary.ts'

/** The n-th event of a run: the same identity in each attempt, another id. */
function published(t: Stage, name: string, dedupe: string): NewEvent {
  return t.event(name, { flow: 'next', key: 'n', source: 'sluice', dedupe, body: dedupe })
}

export const publishedEvents: Suite = (rule) => {
  rule('L2b a published event is stored and placed with the settlement', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.nothing({ flow: 'next' })
    await t.end(run, done, { publish: [published(t, 'p0', `${run.run}/0`), published(t, 'p1', `${run.run}/1`)] })
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['p0', 'p1'])
    assert.equal((await t.record('p0'))?.source, 'sluice')
  })

  rule('L2b a settlement that is lost publishes nothing', async (t) => {
    await t.append('a')
    const run = await t.next()
    t.lapse()
    assert.equal(await t.settle(run, done, { publish: [published(t, 'p0', `${run.run}/0`)] }), 'lost')
    await t.nothing({ flow: 'next' })
    assert.equal(await t.record('p0'), undefined)
    const back = await t.next()
    await t.end(back, done, { publish: [published(t, 'again', `${run.run}/0`)] })
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['again'])
  })

  rule('L2b a repeated attempt publishes nothing twice', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, retry(0), { publish: [published(t, 'p0', `${run.run}/0`)] })
    const second = await t.next()
    const publish = [published(t, 'p0-again', `${run.run}/0`), published(t, 'p1', `${run.run}/1`)]
    await t.end(second, done, { publish })
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['p0', 'p1'])
    await t.nothing()
  })

  rule('L2b what a failing run published stays published', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, blocking, { publish: [published(t, 'p0', `${run.run}/0`)] })
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['p0'])
  })

  rule('L2b an event published into the lane of its own run waits for that run', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, done, { publish: [t.event('b', { dedupe: `${run.run}/0` })] })
    assert.deepEqual(t.names(await t.next()), ['b'])
  })

  rule('L2b where the routes are old, published events are marked routes-old and have no places', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    await t.end(run, done, { publish: [published(t, 'p0', `${run.run}/0`)] })
    await t.nothing({ flow: 'next' })
    const call = { n: 10, lease: 1_000, reasons: ['routes-old'], flows: [] } as const
    const leased = only((await t.store.unrouted(call)).marks)
    assert.deepEqual([leased.flow, leased.reason, t.names([leased.event.id])], ['', 'routes-old', ['p0']])
  })

  rule('L2b L10 what was published and not stored is told: which one, of which settlement, and why', async (t) => {
    for (const key of ['a', 'b', 'lost']) await t.append(key, { key })
    await t.append('first', { flow: 'other', source: 'sluice', dedupe: 'known', body: 'known' })
    const runs = new Map((await t.claim()).map((run) => [run.key, run]))
    const end = (key: string, publish: readonly NewEvent[]): Settle => {
      const { lane, token } = runs.get(key) ?? { lane: '', token: 0 }
      const wrong = key === 'lost' ? 1 : 0
      const how = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined } as const
      return { ...how, lane, token: token + wrong, publish }
    }
    const fresh = published(t, 'fresh', 'fresh')
    const settle = [
      end('a', [fresh, published(t, 'duplicate', 'known'), { ...published(t, 'bad', 'bad'), id: '' }]),
      end('lost', [published(t, 'duplicate too', 'known')]),
      end('b', [{ ...published(t, 'conflict', 'known'), body: bytes('other') }, fresh, published(t, 'last', 'last')]),
    ]
    const reply = await t.turn({ settle, request: 7 })
    assert.deepEqual(reply.settled, ['ok', 'lost', 'ok'])
    const kinds = reply.keptOut.map((one) => [one.settle, one.publish, one.result.kind])
    assert.deepEqual(kinds, [
      [0, 1, 'duplicate'],
      [0, 2, 'refused'],
      [2, 0, 'conflict'],
      [2, 1, 'repeated'],
    ])
    assert.deepEqual(reply.keptOut[0]?.result, { kind: 'duplicate', of: t.id('first') })
    assert.deepEqual((await t.turn({ settle, request: 7 })).keptOut, reply.keptOut)
    assert.deepEqual(t.names(await t.next({ flow: 'next' })), ['fresh', 'last'])
  })

  rule('L2b what was published by old routes is stored, and not told as kept out', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.store.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    const how = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined } as const
    const publish = [published(t, 'p0', 'p0'), { ...published(t, 'p0 again', 'p0') }]
    const { keptOut } = await t.turn({ settle: [{ ...how, lane: run.lane, token: run.token, publish }] })
    assert.deepEqual(keptOut, [{ settle: 0, publish: 1, result: { kind: 'duplicate', of: t.id('p0') } }])
  })
}
