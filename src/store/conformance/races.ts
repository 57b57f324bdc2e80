// What two callers do at the same moment ends as if one had come after the other: nothing lost, nothing twice.
import assert from 'node:assert/strict'
import type { Settle, Store } from '../contract/index.ts'
import { only, sorted, type Stage, type Suite } from './stage.ts'
import { bytes, claimOf, dead, done, mark, newEvent } from './vocabulary.ts'

const WRITERS = 4
const EACH = 30
const KEYS = 5

async function callers(t: Stage): Promise<readonly [Store, Store]> {
  return [t.store, await t.second()]
}

/** Claims and settles until everything was seen; answers what was seen, in order. */
async function work(store: Store, process: string, seen: string[]): Promise<void> {
  let settle: readonly Settle[] = []
  for (let request = 1; seen.length < WRITERS * EACH || settle.length > 0; request++) {
    assert.ok(request < 20_000, `${seen.length} of ${WRITERS * EACH} events were run, and nothing wakes the rest`)
    const claim = [claimOf({ slots: 3, maxEvents: 4 })]
    const { settled, claimed } = await store.turn({ process, request, routes: 0, settle, claim, budget: 1e6 })
    assert.ok(settled.every((answer) => answer === 'ok'))
    for (const run of claimed) seen.push(...run.events.map((event) => `${run.key} ${event.subject}`))
    const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
    settle = claimed.map(({ lane, token }) => ({ lane, token, ...end }))
  }
}

export const races: Suite = (rule) => {
  rule('L1 L2 L7 writers and workers at the same time: every event runs once, each writer’s in order', async (t) => {
    const [one, other] = await callers(t)
    const seen: string[] = []
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let n = 0; n < EACH; n++) {
        const words = { key: `k${n % KEYS}`, subject: `${writer} ${String(n).padStart(2, '0')}` }
        const events = [newEvent('e', words, t.clock.now())]
        const { results } = await (writer % 2 === 0 ? one : other).append({ routes: t.routes, events })
        assert.equal(only(results).kind, 'stored')
      }
    })
    const workers = [one, other, one].map(async (store, n) => work(store, `w${n}`, seen))
    await Promise.all([...writers, ...workers])
    assert.equal(new Set(seen).size, WRITERS * EACH)
    assert.equal(seen.length, WRITERS * EACH)
    for (let key = 0; key < KEYS; key++) {
      for (let writer = 0; writer < WRITERS; writer++) {
        const mine = seen.filter((line) => line.startsWith(`k${key} ${writer} `))
        assert.deepEqual(mine, sorted(mine))
      }
    }
    await t.nothing()
  })

  rule('L10 the same identity from many callers at the same moment is stored once', async (t) => {
    const stores = await callers(t)
    const sent = Array.from({ length: 10 }, async (_, n) => {
      const events = [t.event(`e${n}`, { dedupe: 'x', body: '-' })]
      return only((await (n % 2 === 0 ? stores[0] : stores[1]).append({ routes: t.routes, events })).results)
    })
    const kinds = sorted((await Promise.all(sent)).map((answer) => answer.kind))
    assert.deepEqual(kinds, [...Array.from({ length: 9 }, () => 'duplicate'), 'stored'])
    assert.equal((await t.next()).events.length, 1)
  })

  rule('L9 a letter retried by two people at the same moment is queued once', async (t) => {
    const stores = await callers(t)
    await t.append('a')
    const run = await t.next()
    await t.end(run, dead)
    const calls = stores.map(async (store) =>
      only((await store.steer({ what: 'dead', ids: [run.run], act: 'retry' })).results),
    )
    assert.deepEqual(sorted(await Promise.all(calls)), ['already', 'ok'])
    assert.deepEqual(t.names(await t.next()), ['a'])
  })

  rule('L2 marks leased at the same moment are leased to one caller each', async (t) => {
    const stores = await callers(t)
    for (let n = 0; n < 10; n++) await t.append(`e${n}`, { marks: [mark('outbox')] })
    const call = { n: 6, lease: 1_000, reasons: ['outbox'], flows: [] } as const
    const leased = (await Promise.all(stores.map(async (store) => store.unrouted(call)))).flatMap(
      (reply) => reply.marks,
    )
    assert.equal(leased.length, 10)
    assert.equal(new Set(leased.map((each) => each.id)).size, 10)
  })

  rule('a document written by two at the same revision is written by one', async (t) => {
    const stores = await callers(t)
    const calls = stores.map(async (store, n) => {
      const writes = [{ kind: 'flow', id: 'a', ifRev: 0, body: bytes(`${n}`) }]
      return (await store.writeDocs({ writes, raiseRoutes: false, audit: { who: 'ada', what: `${n}` } })).kind
    })
    assert.deepEqual(sorted(await Promise.all(calls)), ['conflict', 'written'])
    assert.equal((await t.all('audit')).length, 1)
  })
}
