// L5: first ready, first served, by (deadline, ticket). One index is timer and queue for windows, retries and lapses. D2: within a
// lane, and in every list of its events, the order is that of arrival.
import assert from 'node:assert/strict'
import { getKeys, assertSingle, sorted, type ConformanceStage, type Suite } from './stage.ts'
import {
  createClaimRequest,
  dead,
  LEASE,
  createUnrouted,
  createPlacement,
  retry,
  type EventOverrides,
} from './builders.ts'

const MANY: readonly string[] = Array.from({ length: 40 }, (_, n) => `event ${n}`)

/** Events that arrive in one millisecond, with one commit each. Their ids and times sort the other way round. */
async function appendBackwards(t: ConformanceStage, words: EventOverrides): Promise<void> {
  const now = t.clock.now()
  for (const [n, name] of MANY.entries()) {
    const event = t.event(name, { ...words, id: `${String(99 - n)}-${'0'.repeat(23)}` })
    assert.equal(assertSingle(await t.appendEvents({ ...event, time: now - n })).kind, 'stored')
  }
}

async function appendReadyBackwards(t: ConformanceStage): Promise<void> {
  await appendBackwards(t, { quiet: 10 })
  t.clock.advance(10)
}

export const order: Suite = (rule) => {
  rule('L5 lanes are served by their deadlines, not by the arrival of their events', async (t) => {
    await t.append('a', { key: 'a', quiet: 300 })
    await t.append('b', { key: 'b', quiet: 100 })
    await t.append('c', { key: 'c', quiet: 200 })
    t.clock.advance(1_000)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'c', 'a'])
  })

  rule('L5 a claim takes the oldest deadlines first and leaves the rest in their order', async (t) => {
    for (const key of ['a', 'b', 'c', 'd', 'e']) await t.append(key, { key })
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2 })), ['a', 'b'])
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2, process: 'p2' })), ['c', 'd'])
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 2 })), ['e'])
  })

  rule('D2 a run, its record and its dead letter list the events in the order of their arrival', async (t) => {
    await appendReadyBackwards(t)
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), MANY)
    await t.settleOk(run, retry(0))
    const again = await t.claimOne()
    assert.deepEqual(t.names(again), MANY)
    await t.settleOk(again, dead)
    assert.deepEqual(t.names((await t.getDeadLetter(run.runId))?.events ?? []), MANY)
    assert.deepEqual(t.names(assertSingle(await t.findAll('runs')).events), MANY)
    assert.equal(await t.steerDeadLetter(run.runId, 'retry'), 'ok')
    assert.deepEqual(t.names(await t.claimOne()), MANY)
  })

  rule('D2 the rest of a partly accepted run keeps its order', async (t) => {
    await appendReadyBackwards(t)
    const some = MANY.filter((_, n) => n % 3 === 0)
    const outcome = { kind: 'partial', after: 0, dead: [], reason: 'no', block: false } as const
    await t.settleOk(await t.claimOne(), { ...outcome, retry: some.toReversed().map((name) => t.id(name)) })
    assert.deepEqual(t.names(await t.claimOne()), some)
  })

  rule('D2 the list of events is in the order of their arrival, and a replay by it places them so', async (t) => {
    await appendReadyBackwards(t)
    await t.settleOk(await t.claimOne())
    const oldest = await t.store.find({ kind: 'events', filter: {}, cursor: '', n: 100, oldestFirst: true })
    const ids = oldest.items.map(({ id }) => id)
    assert.deepEqual(t.names(ids), MANY)
    assert.deepEqual(t.names((await t.findAll('events')).map(({ id }) => id)), MANY.toReversed())
    const items = ids.map((event) => ({ kind: 'replay', replay: 'r', event, placements: [createPlacement()] }) as const)
    await t.store.place({ routes: t.routes, items })
    assert.deepEqual(t.names(await t.claimOne()), MANY)
  })

  rule('D2 events that two processes append by turns to one lane are listed in the order of the lane', async (t) => {
    const other = await t.openSecondCaller()
    for (const [n, name] of MANY.entries()) {
      const store = n % 2 === 0 ? t.store : other
      const { results } = await store.append({ routes: t.routes, events: [t.event(name)] })
      assert.equal(assertSingle(results).kind, 'stored')
    }
    assert.deepEqual(t.names(await t.claimOne()), MANY)
    const oldest = await t.store.find({ kind: 'events', filter: {}, cursor: '', n: 100, oldestFirst: true })
    assert.deepEqual(t.names(oldest.items.map(({ id }) => id)), MANY)
  })

  rule('D2 events that are placed late are placed in the order of their arrival', async (t) => {
    await appendBackwards(t, { unrouted: [createUnrouted('fan-out', 'flow')] })
    const call = { n: 100, lease: LEASE, reasons: ['fan-out'], flows: ['flow'] } as const
    const { unrouted } = await t.store.claimUnrouted(call)
    assert.deepEqual(t.names(unrouted.map(({ event }) => event.id)), MANY)
    const items = unrouted.map(
      ({ id, token }) => ({ kind: 'unrouted', id, token, placements: [createPlacement()], unrouted: [] }) as const,
    )
    await t.store.place({ routes: t.routes, items })
    assert.deepEqual(t.names(await t.claimOne()), MANY)
  })

  rule('L5 no slots, no lanes', async (t) => {
    await t.append('a')
    await t.assertNothingReady({ maxRuns: 0 })
    assert.equal((await t.claimOne()).key, 'k')
  })

  rule('L5 equal deadlines are served in the order in which they were set', async (t) => {
    for (const key of ['z', 'm', 'a']) await t.append(key, { key, quiet: 100 })
    t.clock.advance(100)
    assert.deepEqual(getKeys(await t.claim()), ['z', 'm', 'a'])
  })

  rule('L5 ties by ticket, not by the first event that waits: k0, k0, k1 is served k0, k1, k0', async (t) => {
    await t.append('first', { key: 'k0' })
    await t.append('second', { key: 'k0' })
    await t.append('third', { key: 'k1' })
    assert.deepEqual(await t.drain({ maxEvents: 1 }), ['k0', 'k1', 'k0'])
  })

  rule('L5 a lane whose run ends when another is due goes behind that one', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.claimOne()
    await t.append('b', { key: 'b', quiet: 100 })
    await t.append('a2', { key: 'a', quiet: 50 })
    t.clock.advance(100)
    await t.settleOk(run)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })

  rule(
    'L5 events that arrived during a run go behind lanes that were due before its end, despite an earlier window',
    async (t) => {
      await t.append('a', { key: 'a' })
      const run = await t.claimOne()
      await t.append('a2', { key: 'a', quiet: 10 })
      await t.append('b', { key: 'b', quiet: 50 })
      t.clock.advance(100)
      await t.settleOk(run)
      assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
    },
  )

  rule('L5 a deadline that moves gets a new ticket', async (t) => {
    await t.append('a', { key: 'a', quiet: 50 })
    t.clock.advance(10)
    await t.append('b', { key: 'b', quiet: 90 })
    t.clock.advance(10)
    await t.append('a2', { key: 'a', quiet: 80 })
    t.clock.advance(80)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })

  rule('L5 a deadline that stays keeps its ticket', async (t) => {
    await t.append('a', { key: 'a', every: 100 })
    await t.append('b', { key: 'b', every: 100 })
    await t.append('a2', { key: 'a', every: 100 })
    t.clock.advance(100)
    assert.deepEqual(getKeys(await t.claim()), ['a', 'b'])
  })

  rule('L5 retries share the index: one that is due does not go before lanes that were due earlier', async (t) => {
    await t.append('failing', { key: 'failing' })
    await t.settleOk(await t.claimOne(), retry(100))
    await t.append('early', { key: 'early', quiet: 99 })
    await t.append('late', { key: 'late', quiet: 101 })
    t.clock.advance(200)
    assert.deepEqual(getKeys(await t.claim()), ['early', 'failing', 'late'])
  })

  rule('L5 lapsed leases share the index: a run is due at the end of its lease', async (t) => {
    await t.append('lapsing', { key: 'lapsing' })
    await t.claimOne()
    await t.append('early', { key: 'early', quiet: LEASE - 1 })
    await t.append('late', { key: 'late', quiet: LEASE + 1 })
    t.clock.advance(LEASE + 100)
    assert.deepEqual(getKeys(await t.claim()), ['early', 'lapsing', 'late'])
  })

  rule('L5 while a lane is ready, any other lane is served before it at most once', async (t) => {
    const busy = ['b0', 'b1', 'b2']
    for (const key of busy) await t.appendEach([`${key} first`, `${key} second`], { key })
    await t.append('quiet one', { key: 'x' })
    const served: string[] = []
    for (let n = 0; !served.includes('x'); n++) {
      const run = await t.claimOne({ maxRuns: 1, maxEvents: 1 })
      served.push(run.key)
      await t.append(`more ${n}`, { key: run.key })
      t.clock.advance(1)
      await t.settleOk(run, { kind: 'done' }, { whileRunning: 'requeue' })
    }
    assert.deepEqual(served, [...busy, 'x'])
  })

  rule('L5 of two lanes that one call fills, the lane that was filled first is served first', async (t) => {
    const keys = ['x', 'y', 'y', 'x']
    await t.appendEvents(...keys.map((key, n) => t.event(`e${n}`, { key, quiet: 100, maxEvents: 2 })))
    assert.deepEqual(getKeys(await t.claim({ maxRuns: 1, maxEvents: 2 })), ['y'])
  })

  rule('L5 a claim serves the flow that asks; a call with two flows serves both', async (t) => {
    await t.append('a', { flow: 'flow', key: 'a' })
    await t.append('b', { flow: 'mail', key: 'b' })
    await t.append('c', { flow: 'else', key: 'c' })
    const { claimed } = await t.settleAndClaim({
      claim: [createClaimRequest({ flow: 'mail' }), createClaimRequest({ flow: 'flow' })],
    })
    assert.deepEqual(sorted(claimed.map((run) => [run.flow, run.key])), [
      ['flow', 'a'],
      ['mail', 'b'],
    ])
  })

  rule('L5 the reply has the next deadline of each flow: of a window, of a retry, of a lease', async (t) => {
    const start = t.clock.now()
    const due = async (slots: number): Promise<number | undefined> => {
      const { nextDeadlines: heads } = await t.settleAndClaim({ claim: [createClaimRequest({ maxRuns: slots })] })
      assert.deepEqual(
        heads.map((head) => head.flow),
        ['flow'],
      )
      const at = heads[0]?.due
      return at === undefined ? undefined : at - start
    }
    assert.equal(await due(0), undefined)
    await t.append('a', { quiet: 100 })
    assert.equal(await due(1), 100)
    t.clock.advance(150)
    assert.equal(await due(0), 100)
    const run = await t.claimOne({ lease: 1_000 })
    assert.equal(await due(1), 1_150)
    await t.settleOk(run, retry(5_000))
    assert.equal(await due(1), 5_150)
    await t.append('b', { key: 'b', quiet: 200 })
    await t.append('elsewhere', { flow: 'mail', quiet: 10 })
    assert.equal(await due(1), 350)
  })

  rule('L5 for a claim that got all its runs the next deadline is now', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b', quiet: 5_000 })
    const full = await t.settleAndClaim({ claim: [createClaimRequest({ maxRuns: 1 })] })
    assert.deepEqual(full.nextDeadlines, [{ flow: 'flow', due: full.now }])
    await t.append('c', { key: 'c' })
    const more = await t.settleAndClaim({ claim: [createClaimRequest({ maxRuns: 2, lease: 60_000 })] })
    assert.deepEqual(getKeys(more.claimed), ['c'])
    assert.deepEqual(more.nextDeadlines, [{ flow: 'flow', due: t.clock.now() + 5_000 }])
  })

  rule('L5 a run that ends draws a ticket, even when the deadline stays the same number', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.claimOne({ lease: 1_000 })
    await t.append('a2', { key: 'a', quiet: 1_000 })
    await t.append('b', { key: 'b', quiet: 1_000 })
    await t.settleOk(run)
    t.clock.advance(1_000)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })

  rule('L5 a run that is dissolved draws a ticket, even when the deadline stays the same number', async (t) => {
    await t.append('a', { key: 'a', quiet: 1, max: 60_000 })
    const run = await t.claimOneAfter(1, { lease: 1_000 })
    await t.append('a2', { key: 'a', quiet: 1_000, max: 60_000, cancel: true })
    await t.append('b', { key: 'b', quiet: 1_000 })
    await t.settleOk(run, { kind: 'cancelled' })
    t.clock.advance(1_000)
    assert.deepEqual(getKeys(await t.claim()), ['b', 'a'])
  })
}
