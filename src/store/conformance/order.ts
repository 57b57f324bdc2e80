// L5: first ready, first served, by (deadline, ticket); one index is timer and queue for windows, retries and lapses.
import assert from 'node:assert/strict'
import { keys, sorted, type Suite } from './stage.ts'
import { claimOf, LEASE, retry } from './vocabulary.ts'

export const order: Suite = (rule) => {
  rule('L5 lanes are served by their deadlines, not by the arrival of their events', async (t) => {
    await t.append('a', { key: 'a', quiet: 300 })
    await t.append('b', { key: 'b', quiet: 100 })
    await t.append('c', { key: 'c', quiet: 200 })
    t.clock.advance(1_000)
    assert.deepEqual(keys(await t.claim()), ['b', 'c', 'a'])
  })

  rule('L5 a claim takes the oldest deadlines first and leaves the rest in their order', async (t) => {
    for (const key of ['a', 'b', 'c', 'd', 'e']) await t.append(key, { key })
    assert.deepEqual(keys(await t.claim({ slots: 2 })), ['a', 'b'])
    assert.deepEqual(keys(await t.claim({ slots: 2, process: 'p2' })), ['c', 'd'])
    assert.deepEqual(keys(await t.claim({ slots: 2 })), ['e'])
  })

  rule('L5 no slots, no lanes', async (t) => {
    await t.append('a')
    await t.nothing({ slots: 0 })
    assert.equal((await t.next()).key, 'k')
  })

  rule('L5 equal deadlines are served in the order in which they were set', async (t) => {
    for (const key of ['z', 'm', 'a']) await t.append(key, { key, quiet: 100 })
    t.clock.advance(100)
    assert.deepEqual(keys(await t.claim()), ['z', 'm', 'a'])
  })

  rule('L5 ties by ticket, not by the first event that waits: k0, k0, k1 is served k0, k1, k0', async (t) => {
    await t.append('first', { key: 'k0' })
    await t.append('second', { key: 'k0' })
    await t.append('third', { key: 'k1' })
    assert.deepEqual(await t.drain({ maxEvents: 1 }), ['k0', 'k1', 'k0'])
  })

  rule('L5 a lane whose run ends at the moment another is due goes behind that one', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.next()
    await t.append('b', { key: 'b', quiet: 100 })
    await t.append('a2', { key: 'a', quiet: 50 })
    t.clock.advance(100)
    await t.end(run)
    assert.deepEqual(keys(await t.claim()), ['b', 'a'])
  })

  rule(
    'L5 what came during a run goes behind lanes that were due before its end, though its own window was earlier',
    async (t) => {
      await t.append('a', { key: 'a' })
      const run = await t.next()
      await t.append('a2', { key: 'a', quiet: 10 })
      await t.append('b', { key: 'b', quiet: 50 })
      t.clock.advance(100)
      await t.end(run)
      assert.deepEqual(keys(await t.claim()), ['b', 'a'])
    },
  )

  rule('L5 a deadline that moves gets a new ticket', async (t) => {
    await t.append('a', { key: 'a', quiet: 50 })
    t.clock.advance(10)
    await t.append('b', { key: 'b', quiet: 90 })
    t.clock.advance(10)
    await t.append('a2', { key: 'a', quiet: 80 })
    t.clock.advance(80)
    assert.deepEqual(keys(await t.claim()), ['b', 'a'])
  })

  rule('L5 a deadline that stays keeps its ticket', async (t) => {
    await t.append('a', { key: 'a', every: 100 })
    await t.append('b', { key: 'b', every: 100 })
    await t.append('a2', { key: 'a', every: 100 })
    t.clock.advance(100)
    assert.deepEqual(keys(await t.claim()), ['a', 'b'])
  })

  rule('L5 retries share the index: one that is due does not go before lanes that were due earlier', async (t) => {
    await t.append('failing', { key: 'failing' })
    await t.end(await t.next(), retry(100))
    await t.append('early', { key: 'early', quiet: 99 })
    await t.append('late', { key: 'late', quiet: 101 })
    t.clock.advance(200)
    assert.deepEqual(keys(await t.claim()), ['early', 'failing', 'late'])
  })

  rule('L5 lapsed leases share the index: a run is due at the end of its lease', async (t) => {
    await t.append('lapsing', { key: 'lapsing' })
    await t.next()
    await t.append('early', { key: 'early', quiet: LEASE - 1 })
    await t.append('late', { key: 'late', quiet: LEASE + 1 })
    t.clock.advance(LEASE + 100)
    assert.deepEqual(keys(await t.claim()), ['early', 'lapsing', 'late'])
  })

  rule('L5 while a lane is ready, any other lane is served before it at most once', async (t) => {
    const busy = ['b0', 'b1', 'b2']
    for (const key of busy) await t.appendEach([`${key} first`, `${key} second`], { key })
    await t.append('quiet one', { key: 'x' })
    const served: string[] = []
    for (let n = 0; !served.includes('x'); n++) {
      const run = await t.next({ slots: 1, maxEvents: 1 })
      served.push(run.key)
      await t.append(`more ${n}`, { key: run.key })
      t.clock.advance(1)
      await t.end(run, { kind: 'done' }, { whileRunning: 'requeue' })
    }
    assert.deepEqual(served, [...busy, 'x'])
  })

  rule('L5 a claim serves the flow that asks; a call with two flows serves both', async (t) => {
    await t.append('a', { flow: 'flow', key: 'a' })
    await t.append('b', { flow: 'mail', key: 'b' })
    await t.append('c', { flow: 'else', key: 'c' })
    const { claimed } = await t.turn({ claim: [claimOf({ flow: 'mail' }), claimOf({ flow: 'flow' })] })
    assert.deepEqual(sorted(claimed.map((run) => [run.flow, run.key])), [
      ['flow', 'a'],
      ['mail', 'b'],
    ])
  })

  rule('L5 the answer says the next deadline of each flow: of a window, of a retry, of a lease', async (t) => {
    const start = t.clock.now()
    const due = async (slots: number): Promise<number | undefined> => {
      const { heads } = await t.turn({ claim: [claimOf({ slots })] })
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
    const run = await t.next({ lease: 1_000 })
    assert.equal(await due(1), 1_150)
    await t.end(run, retry(5_000))
    assert.equal(await due(1), 5_150)
    await t.append('b', { key: 'b', quiet: 200 })
    await t.append('elsewhere', { flow: 'mail', quiet: 10 })
    assert.equal(await due(1), 350)
  })

  rule('L5 a claim that has got all its slots is told to ask again, not when', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b', quiet: 5_000 })
    const full = await t.turn({ claim: [claimOf({ slots: 1 })] })
    assert.deepEqual(full.heads, [{ flow: 'flow', due: full.now }])
    await t.append('c', { key: 'c' })
    const more = await t.turn({ claim: [claimOf({ slots: 2, lease: 60_000 })] })
    assert.deepEqual(keys(more.claimed), ['c'])
    assert.deepEqual(more.heads, [{ flow: 'flow', due: t.clock.now() + 5_000 }])
  })

  rule('L5 a run that ends draws a ticket, even when the deadline stays the same number', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.next({ lease: 1_000 })
    await t.append('a2', { key: 'a', quiet: 1_000 })
    await t.append('b', { key: 'b', quiet: 1_000 })
    await t.end(run)
    t.clock.advance(1_000)
    assert.deepEqual(keys(await t.claim()), ['b', 'a'])
  })

  rule('L5 a run that is dissolved draws a ticket, even when the deadline stays the same number', async (t) => {
    await t.append('a', { key: 'a', quiet: 1, max: 60_000 })
    const run = await t.dueIn(1, { lease: 1_000 })
    await t.append('a2', { key: 'a', quiet: 1_000, max: 60_000, cancel: true })
    await t.append('b', { key: 'b', quiet: 1_000 })
    await t.end(run, { kind: 'cancelled' })
    t.clock.advance(1_000)
    assert.deepEqual(keys(await t.claim()), ['b', 'a'])
  })
}
