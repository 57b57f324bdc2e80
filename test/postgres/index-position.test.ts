// An event that only moves a deadline back moves its lane in no index, so the lane is too early there. A claim must not take it
// before its deadline or in the wrong order, nor find it again and again.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'
import type { Store, SettleAndClaimReply } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const QUIET = 10_000
const MAX = 1_000_000

describe.each(inject('postgresServers'))('$name', ({ url: server }) => {
  const schema = 'sluice'
  // The test uses its own database: an open transaction in the same one keeps the server from reusing space.
  const database = `standings_${process.pid}`
  const url = server.replace(/\/[^/?]*(\?|$)/, `/${database}$1`)
  const clock = new VirtualClock()
  const admin = new pg.Client({ connectionString: server })
  const onlooker = new pg.Client({ connectionString: url })
  let store: Store
  let request = 0

  beforeAll(async () => {
    await admin.connect()
    await admin.query(`create database ${database}`)
    store = await openPostgresStore({ url, schema, clock, connections: 3, acceptLoss: true })
    await onlooker.connect()
    await onlooker.query(`set search_path = ${schema}`)
  })
  afterAll(async () => {
    await Promise.all([store.close(), onlooker.end()])
    await admin.query(`drop database ${database}`)
    await admin.end()
  })

  function send(flow: string, keys: readonly string[]): Promise<unknown> {
    const events = keys.map((key) => createEventToStore(key, { flow, key, quiet: QUIET, max: MAX }, clock.now()))
    return store.append({ routes: 1, events })
  }

  function turn(flow: string, slots = 10): Promise<SettleAndClaimReply> {
    const claim = [createClaimRequest({ flow, maxRuns: slots })]
    return store.settleAndClaim({ process: 'p', request: ++request, routes: 1, settle: [], claim, budget: 64_000_000 })
  }

  async function count(sql: string, values: readonly unknown[] = []): Promise<number> {
    const { rows } = await onlooker.query<{ n: string }>(sql, [...values])
    return Number(rows[0]?.n)
  }

  it('a lane whose deadline moves later 300 times is updated in place', async () => {
    for (let n = 0; n < 300; n++) {
      clock.advance(10)
      await send('hot', ['k'])
    }
    const updates = `select n_tup_upd as n from pg_stat_user_tables where schemaname = $1 and relname = 'lanes'`
    // Connections report their statistics about once a second, when they are used again.
    await expect
      .poll(async () => {
        await Promise.all([1, 2, 3].map(() => store.stats()))
        return count(updates, [schema])
      })
      .toBeGreaterThan(290)
    const inPlace = await count(updates.replace('n_tup_upd', 'n_tup_hot_upd'), [schema])
    expect(inPlace / (await count(updates, [schema]))).toBeGreaterThan(0.9)
    expect(await count('select rings - due as n from lanes where flow = $1', ['hot'])).toBeLessThan(-2_000)
  })

  it('among many lanes with later deadlines, those that are due run, first ready first', async () => {
    const many = Array.from({ length: 700 }, (_, n) => `pushed ${n}`)
    await send('order', many)
    clock.advance(1_000)
    await send('order', ['one', 'two'])
    clock.advance(1_000)
    // These keep their positions, before the two that are due earlier.
    await send('order', many)
    clock.advance(500)
    await send('order', ['one'])
    clock.advance(7_600)
    // The deadlines of all but 'two' are now later than this time.
    const early = 'select count(*) as n from lanes where flow = $1 and rings < due and rings <= $2'
    expect(await count(early, ['order', clock.now()])).toBe(700)
    expect((await turn('order', 3)).claimed).toEqual([])
    expect(await count(early, ['order', clock.now()])).toBe(0)
    clock.advance(900)
    expect((await turn('order')).claimed.map(({ key }) => key)).toEqual(['two'])
    clock.advance(1_100)
    const first = (await turn('order', 3)).claimed.map(({ key }) => key)
    expect(first).toEqual(['pushed 0', 'pushed 1', 'pushed 2'])
    clock.advance(500)
    const rest = (await turn('order', 1_000)).claimed.map(({ key }) => key)
    expect(rest).toEqual([...many.slice(3), 'one'])
  })

  it('a lane that moved behind another one runs after it, although both are found and there is one slot', async () => {
    await send('behind', ['a'])
    clock.advance(100)
    await send('behind', ['b'])
    clock.advance(100)
    await send('behind', ['a'])
    clock.advance(QUIET + 500)
    const order = [await turn('behind', 1), await turn('behind', 1), await turn('behind', 1)]
    expect(order.map(({ claimed }) => claimed.map(({ key }) => key))).toEqual([['b'], ['a'], []])
  })

  it('a lane that another process moved to its correct position is not moved back by a process with an old cache', async () => {
    const other = await openPostgresStore({ url, schema, clock, connections: 2, acceptLoss: true })
    await send('right', ['k'])
    clock.advance(100)
    await send('right', ['k'])
    const due = clock.now() + QUIET
    clock.advance(QUIET - 100)
    const claim = [createClaimRequest({ flow: 'right' })]
    const call = { process: 'other', request: 1, routes: 1, settle: [], claim, budget: 64_000_000 }
    expect((await other.settleAndClaim(call)).claimed).toEqual([])
    await other.close()
    const rings = 'select rings as n from lanes where flow = $1'
    expect(await count(rings, ['right'])).toBe(due)
    await send('right', ['k'])
    expect(await count(rings, ['right'])).toBe(due)
    expect(await count(rings.replace('rings', 'due'), ['right'])).toBe(clock.now() + QUIET)
  })

  it('the next deadline is exact, and a little early only behind very many lanes', async () => {
    await send('heads', ['a', 'b'])
    clock.advance(100)
    await send('heads', ['c'])
    clock.advance(100)
    await send('heads', ['a', 'b'])
    expect((await turn('heads', 0)).nextDeadlines).toEqual([{ flow: 'heads', due: clock.now() - 100 + QUIET }])
    const many = Array.from({ length: 100 }, (_, n) => `many ${n}`)
    await send('crowd', many)
    const first = clock.now() + QUIET
    clock.advance(100)
    await send('crowd', many)
    expect((await turn('crowd', 0)).nextDeadlines).toEqual([{ flow: 'crowd', due: first }])
    // A process that wakes up too early gets the correct deadline.
    clock.advance(QUIET - 100)
    const { claimed, nextDeadlines: heads } = await turn('crowd', 10)
    expect({ claimed, heads }).toEqual({ claimed: [], heads: [{ flow: 'crowd', due: first + 100 }] })
  })
})
