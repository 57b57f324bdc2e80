// Lanes whose rows are out of date: after a crash, every acknowledged event is there, with its deadline and in its order.
import { copyFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createClaimRequest } from '../conformance/builders.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { connect, event, freshFile, open, send } from './scratch.ts'

const QUIET = { quiet: 1_000, max: 100_000 }

/** A copy of the file as a crash at this moment would leave it. */
function crashed(file: string): string {
  const copy = freshFile()
  for (const part of ['', '-wal']) copyFileSync(file + part, copy + part)
  return copy
}

function behind(file: string): number {
  return Number(connect(file).prepare('select count(*) as n from pushed_back').get()?.['n'])
}

async function claimed(store: Store): Promise<readonly (readonly [string, readonly string[]])[]> {
  const claim = [createClaimRequest({ maxRuns: 10_000, maxEvents: 10_000 })]
  const reply = await store.settleAndClaim({ process: 'p', request: 1, routes: 1, settle: [], claim, budget: 1e9 })
  return reply.claimed.map((lease) => [lease.key, lease.events.map((one) => one.id)] as const)
}

describe('lanes with deferred writes', () => {
  it.each([2, 31, 32, 33, 64, 65, 200])('%i events in one lane are all there, in order, not early', async (count) => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    const ids = Array.from({ length: count }, (_, n) => `e${n}`)
    for (const id of ids) {
      await send(store, event(id, { ...QUIET, key: 'k' }))
      clock.advance(10)
    }
    const after = await open(crashed(file), { clock })
    clock.advance(989)
    expect(await claimed(after)).toEqual([])
    clock.advance(1)
    expect(await claimed(await open(crashed(file), { clock }))).toEqual([['k', ids]])
  })

  it('placements that moved to their own table are neither lost nor doubled by a crash', async () => {
    let file = freshFile()
    const clock = new VirtualClock()
    const ids = Array.from({ length: 100 }, (_, n) => `e${n}`)
    for (let from = 0; from < 100; from += 10) {
      const store = await open(file, { clock })
      for (const id of ids.slice(from, from + 10)) await send(store, event(id, { ...QUIET, key: 'k' }))
      file = crashed(file)
    }
    clock.advance(1_000)
    const store = await open(file, { clock })
    expect(await claimed(store)).toEqual([['k', ids]])
    const rows = connect(file).prepare('select count(*) as n from places').get()
    expect(Number(rows?.['n'])).toBe(3)
  })

  it('reading the activity feed or stats writes no lanes, and stats have the true deadlines', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    for (const id of ['a', 'b']) {
      await send(store, event(id, { ...QUIET, key: 'k' }))
      clock.advance(100)
    }
    const sent = clock.now() - 100
    const before = behind(file)
    expect(before).toBeGreaterThan(0)
    expect((await store.readFeed({ after: 0, n: 10 })).changes).toHaveLength(2)
    expect(behind(file)).toBe(before)
    expect((await store.stats()).flows.map(({ due }) => due)).toEqual([sent + QUIET.quiet])
    expect(behind(file)).toBe(before)
    await send(store, event('c', { ...QUIET, key: 'not pushed back' }))
    expect((await store.stats()).flows.map(({ due }) => due)).toEqual([sent + QUIET.quiet])
    await send(store, event('d', { ...QUIET, key: 'sooner', quiet: 1 }))
    expect((await store.stats()).flows.map(({ due }) => due)).toEqual([clock.now() + 1])
    await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 10 })
    expect(behind(file)).toBe(0)
  })

  it('a read-only store uses the rows, not the deferred writes of the time when it opened', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    for (const id of ['a', 'b']) await send(store, event(id, { ...QUIET, key: 'k' }))
    expect(behind(file)).toBeGreaterThan(0)
    const reader = await open(file, { clock, readOnly: true })
    clock.advance(50_000)
    expect(await claimed(store)).toEqual([['k', ['a', 'b']]])
    await send(store, event('c', { ...QUIET, key: 'later' }))
    await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 10 })
    const [told, true_] = [await reader.stats(), await store.stats()]
    expect(told.flows.map(({ due }) => due)).toEqual(true_.flows.map(({ due }) => due))
  })

  it('after the lane ran, lists that are older than its row have no effect', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    for (const id of ['a', 'b']) await send(store, event(id, { ...QUIET, key: 'one' }))
    for (const id of ['c', 'd']) await send(store, event(id, { ...QUIET, quiet: 50_000, key: 'two' }))
    expect(behind(file)).toBeGreaterThan(0)
    clock.advance(1_000)
    expect(await claimed(store)).toEqual([['one', ['a', 'b']]])
    await send(store, event('e', { ...QUIET, key: 'one' }))
    const after = await open(crashed(file), { clock })
    const lanes = (await after.find({ kind: 'lanes', filter: {}, cursor: '', n: 10 })).items
    const seen = new Map(lanes.map(({ key, waiting, run }) => [key, [waiting, run?.events]]))
    expect(seen.get('one')).toEqual([1, 2])
    expect(seen.get('two')).toEqual([2, undefined])
  })

  it('a deadline that moves earlier is met', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    for (const quiet of [1_000, 5_000, 500]) await send(store, event(`q${quiet}`, { quiet, max: 9_000, key: 'k' }))
    clock.advance(500)
    expect(await claimed(await open(crashed(file), { clock }))).toEqual([['k', ['q1000', 'q5000', 'q500']]])
  })

  it('first ready, first served also holds among lanes with deferred writes', async () => {
    const clock = new VirtualClock()
    const store = await open(freshFile(), { clock })
    for (const key of ['a', 'b', 'c']) await send(store, event(key, { ...QUIET, key }))
    clock.advance(1)
    for (const key of ['b', 'a']) await send(store, event(`${key}2`, { ...QUIET, key }))
    clock.advance(1_000)
    expect((await claimed(store)).map(([key]) => key)).toEqual(['c', 'b', 'a'])
  })

  it('the lists stay bounded: 3,000 lanes and 700 commits', async () => {
    const file = freshFile()
    const store = await open(file)
    const keys = Array.from({ length: 3_000 }, (_, n) => `k${n}`)
    for (let n = 0; n < 3; n++) await send(store, ...keys.map((key) => event(`${key} ${n}`, { ...QUIET, key })))
    for (let n = 0; n < 700; n++) await send(store, event(`often ${n}`, { ...QUIET, key: `k${n % 20}` }))
    expect(behind(file)).toBeLessThanOrEqual(256)
    const { items } = await store.find({ kind: 'lanes', filter: {}, cursor: '', n: 3_000 })
    expect(items.reduce((sum, lane) => sum + lane.waiting, 0)).toBe(9_700)
    expect(behind(file)).toBe(0)
  })
})
