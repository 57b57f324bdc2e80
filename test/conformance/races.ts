// Two callers at the same time have the same result as one after the other: nothing is lost, nothing happens twice.
import assert from 'node:assert/strict'
import type { Settlement, Store } from '../../src/store/contract/index.ts'
import { assertSingle, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { encodeText, createClaimRequest, dead, done, createUnrouted, createEventToStore } from './builders.ts'

const WRITERS = 4
const EACH = 30
const KEYS = 5

async function callers(t: ConformanceStage): Promise<readonly [Store, Store]> {
  return [t.store, await t.openSecondCaller()]
}

/** Claims and settles until every event was seen, and returns the events in order. */
async function runWorker(store: Store, process: string, seen: string[]): Promise<void> {
  let settle: readonly Settlement[] = []
  for (let request = 1; seen.length < WRITERS * EACH || settle.length > 0; request++) {
    assert.ok(request < 20_000, `${seen.length} of ${WRITERS * EACH} events were run, and nothing wakes the rest`)
    const claim = [createClaimRequest({ maxRuns: 3, maxEvents: 4 })]
    const { settled, claimed } = await store.settleAndClaim({ process, request, routes: 0, settle, claim, budget: 1e6 })
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
        const events = [createEventToStore('e', words, t.clock.now())]
        const { results } = await (writer % 2 === 0 ? one : other).append({ routes: t.routes, events })
        assert.equal(assertSingle(results).kind, 'stored')
      }
    })
    const workers = [one, other, one].map(async (store, n) => runWorker(store, `w${n}`, seen))
    await Promise.all([...writers, ...workers])
    assert.equal(new Set(seen).size, WRITERS * EACH)
    assert.equal(seen.length, WRITERS * EACH)
    for (let key = 0; key < KEYS; key++) {
      for (let writer = 0; writer < WRITERS; writer++) {
        const mine = seen.filter((line) => line.startsWith(`k${key} ${writer} `))
        assert.deepEqual(mine, sorted(mine))
      }
    }
    await t.assertNothingReady()
  })

  rule('L10 the same identity from many callers at the same moment is stored once', async (t) => {
    const stores = await callers(t)
    const sent = Array.from({ length: 10 }, async (_, n) => {
      const events = [t.event(`e${n}`, { dedupe: 'x', body: '-' })]
      return assertSingle((await (n % 2 === 0 ? stores[0] : stores[1]).append({ routes: t.routes, events })).results)
    })
    const kinds = sorted((await Promise.all(sent)).map((answer) => answer.kind))
    assert.deepEqual(kinds, [...Array.from({ length: 9 }, () => 'duplicate'), 'stored'])
    assert.equal((await t.claimOne()).events.length, 1)
  })

  rule('L9 a dead letter retried twice at the same time is queued once', async (t) => {
    const stores = await callers(t)
    await t.append('a')
    const run = await t.claimOne()
    await t.settleOk(run, dead)
    const calls = stores.map(async (store) =>
      assertSingle((await store.steer({ what: 'dead', ids: [run.runId], act: 'retry' })).results),
    )
    assert.deepEqual(sorted(await Promise.all(calls)), ['already', 'ok'])
    assert.deepEqual(t.names(await t.claimOne()), ['a'])
  })

  rule('L2 unrouted events claimed at the same time are leased to one caller each', async (t) => {
    const stores = await callers(t)
    for (let n = 0; n < 10; n++) await t.append(`e${n}`, { unrouted: [createUnrouted('outbox')] })
    const call = { n: 6, lease: 1_000, reasons: ['outbox'], flows: [] } as const
    const leased = (await Promise.all(stores.map(async (store) => store.claimUnrouted(call)))).flatMap(
      (reply) => reply.unrouted,
    )
    assert.equal(leased.length, 10)
    assert.equal(new Set(leased.map((each) => each.id)).size, 10)
  })

  rule('L15 events of one run purged at the same time are all gone from its record', async (t) => {
    const stores = await callers(t)
    for (let round = 0; round < 5; round++) {
      const names = Array.from({ length: 4 }, (_, n) => `e${round} ${n}`)
      await t.appendEach(names)
      await t.settleOk(await t.claimOne())
      const calls = names.map(async (name, n) =>
        (n % 2 === 0 ? stores[0] : stores[1]).purge({ what: { kind: 'event', id: t.id(name) }, n: 10 }),
      )
      await Promise.all(calls)
      assert.deepEqual(await t.findAll('runs'), [])
    }
  })

  rule('a document written by two at the same revision is written by one', async (t) => {
    const stores = await callers(t)
    const calls = stores.map(async (store, n) => {
      const writes = [{ kind: 'flow', id: 'a', ifRev: 0, body: encodeText(`${n}`) }]
      return (await store.writeDocs({ writes, raiseRoutes: false, audit: { who: 'ada', what: `${n}` } })).kind
    })
    assert.deepEqual(sorted(await Promise.all(calls)), ['conflict', 'written'])
    assert.equal((await t.findAll('audit')).length, 1)
  })
}
