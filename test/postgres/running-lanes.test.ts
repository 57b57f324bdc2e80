// A claimed lane keeps its index position. No claim may take it for ready there, and its lease must still count as a deadline.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'
import type { LeasedRun, Settlement, Store, SettleAndClaimReply } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const LEASE = 60_000

describe.each(inject('postgresServers'))('$name', ({ url, name }) => {
  const schema = `running_${process.pid}_${name.replaceAll(/\W/g, '').toLowerCase()}`
  const clock = new VirtualClock()
  const onlooker = new pg.Client({ connectionString: url })
  let here: Store
  let there: Store
  let request = 0

  beforeAll(async () => {
    here = await openPostgresStore({ url, schema, clock, connections: 2, acceptLoss: true })
    there = await openPostgresStore({ url, schema, clock, connections: 2, acceptLoss: true })
    await onlooker.connect()
    await onlooker.query(`set search_path = ${schema}`)
    // The first call of a process is for the rules, which move what they claim.
    for (const store of [here, there]) await turn(store, 'none', 1)
  })
  afterAll(async () => {
    await Promise.all([here.close(), there.close(), onlooker.end()])
  })

  function send(flow: string, keys: readonly string[], quiet = 0): Promise<unknown> {
    const events = keys.map((key) => createEventToStore(key, { flow, key, quiet, max: 100 * LEASE }, clock.now()))
    return here.append({ routes: 1, events })
  }

  function turn(
    store: Store,
    flow: string,
    slots: number,
    settle: readonly Settlement[] = [],
  ): Promise<SettleAndClaimReply> {
    const claim = [createClaimRequest({ flow, maxRuns: slots, lease: LEASE, maxEvents: 1 })]
    const process = store === here ? 'here' : 'there'
    return store.settleAndClaim({ process, request: ++request, routes: 1, settle, claim, budget: 64_000_000 })
  }

  /** The deadlines move back, and the lanes keep their positions. */
  async function push(flow: string, keys: readonly string[]): Promise<void> {
    await send(flow, keys, 100)
    clock.advance(50)
    await send(flow, keys, 10 * LEASE)
    clock.advance(150)
  }

  async function figures(flow: string): Promise<unknown> {
    return (await there.stats()).flows.find((one) => one.flow === flow)
  }

  /** Counts the lanes whose position is before their deadline. */
  async function early(flow: string): Promise<number> {
    const { rows } = await onlooker.query<{ n: string }>(
      'select count(*) as n from lanes where flow = $1 and rings < due',
      [flow],
    )
    return Number(rows[0]?.n)
  }

  it('other processes skip the claimed lane and serve the next one', async () => {
    await send('pass', ['a', 'b', 'c', 'd'])
    expect(keysOf(await turn(here, 'pass', 2))).toEqual(['a', 'b'])
    expect(await early('pass')).toBe(2)
    expect(keysOf(await turn(there, 'pass', 1))).toEqual(['c'])
    expect(keysOf(await turn(here, 'pass', 5))).toEqual(['d'])
    const rest = await turn(there, 'pass', 5)
    expect(rest).toMatchObject({ claimed: [], nextDeadlines: [{ flow: 'pass', due: clock.now() + LEASE }] })
  })

  it('any process finds the lane when its lease is over, and stats count it as running until then', async () => {
    await send('lapse', ['a', 'b'])
    await turn(here, 'lapse', 1)
    expect(await figures('lapse')).toMatchObject({ live: 1, due: clock.now() })
    expect(keysOf(await turn(there, 'lapse', 1))).toEqual(['b'])
    expect(await figures('lapse')).toMatchObject({ live: 2, due: clock.now() + LEASE })
    clock.advance(LEASE - 1)
    expect(keysOf(await turn(there, 'lapse', 5))).toEqual([])
    clock.advance(1)
    expect(await figures('lapse')).toMatchObject({ live: 0, due: clock.now() })
    expect(keysOf(await turn(there, 'lapse', 5))).toEqual(['a', 'b'])
  })

  it('five hundred running lanes do not hide one that becomes due behind them', async () => {
    const many = Array.from({ length: 500 }, (_, n) => `run ${n}`)
    await send('many', many)
    expect((await turn(here, 'many', 500)).claimed).toHaveLength(500)
    expect(await early('many')).toBe(500)
    await send('many', ['late'], 5_000)
    const due = clock.now() + 5_000
    expect((await turn(there, 'many', 3)).nextDeadlines).toEqual([{ flow: 'many', due }])
    expect(await figures('many')).toMatchObject({ due, live: 500 })
    clock.advance(5_000)
    expect(await figures('many')).toMatchObject({ due })
    expect(keysOf(await turn(there, 'many', 3))).toEqual(['late'])
  })

  it('an event that arrives during the run is served after it', async () => {
    await send('again', ['k'])
    const first = await turn(here, 'again', 1)
    const second = createEventToStore('second', { flow: 'again', key: 'k', quiet: 0 }, clock.now())
    await there.append({ routes: 1, events: [second] })
    expect(keysOf(await turn(there, 'again', 1))).toEqual([])
    const next = await turn(here, 'again', 1, first.claimed.map(done))
    expect(next).toMatchObject({ settled: ['ok'], claimed: [{ key: 'k', events: [{ id: second.id }] }] })
  })

  it('the end of the lease is found among debounced lanes that are as early in the index', async () => {
    await send('beside', ['x'])
    await turn(here, 'beside', 1)
    const lapse = clock.now() + LEASE
    await push('beside', ['a'])
    expect((await turn(there, 'beside', 0)).nextDeadlines).toEqual([{ flow: 'beside', due: lapse }])
    await push('beside', ['b', 'c', 'd'])
    const { claimed, nextDeadlines: heads } = await turn(there, 'beside', 1)
    expect({ claimed, heads }).toEqual({ claimed: [], heads: [{ flow: 'beside', due: lapse }] })
  })

  it('a lane whose run is extended beyond its lease moves to its correct position', async () => {
    await send('later', ['x', 'a', 'b'])
    const { claimed } = await turn(here, 'later', 3)
    const lapse = clock.now() + LEASE
    const outcome = { kind: 'snoozed', after: 10 * LEASE, state64: '' } as const
    await turn(
      here,
      'later',
      0,
      claimed.slice(1).map((lease) => ({ ...done(lease), outcome })),
    )
    expect(await early('later')).toBe(1)
    expect((await turn(there, 'later', 1)).nextDeadlines).toEqual([{ flow: 'later', due: lapse }])
  })

  it('a lane with a renewed lease moves to the end of the lease, and stats include it', async () => {
    await send('renewed', ['a', 'b', 'c'])
    const { claimed } = await turn(here, 'renewed', 3)
    // After a retry, the position of a lane is stored with its lease.
    const retry = { kind: 'retry', after: 0 } as const
    await turn(
      here,
      'renewed',
      0,
      claimed.slice(2).map((lease) => ({ ...done(lease), outcome: retry })),
    )
    const tried = await turn(here, 'renewed', 1)
    const runs = [...claimed.slice(0, 2), ...tried.claimed].map(({ lane, token }) => ({ lane, token, commit: false }))
    const passed = async (): Promise<number> => {
      const sql = 'select count(*) as n from lanes where flow = $1 and rings <= $2'
      return Number((await onlooker.query<{ n: string }>(sql, ['renewed', clock.now()])).rows[0]?.n)
    }
    expect(await passed()).toBe(2)
    for (let n = 0; n < 10; n++) {
      clock.advance(LEASE / 3)
      await here.renew({ lease: LEASE, runs })
      expect(await passed()).toBe(0)
      expect(await figures('renewed')).toMatchObject({ live: 3, due: clock.now() + LEASE })
    }
    // The lease is renewed as late as possible, and not again.
    clock.advance(LEASE - 1)
    expect(await figures('renewed')).toMatchObject({ live: 3, due: clock.now() + 1 })
  })

  it('no index covers a column that a claim or a later deadline changes', async () => {
    const { rows } = await onlooker.query<{ attname: string }>(
      `select distinct a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid
       where i.indrelid = 'lanes'::regclass and (a.attnum = any(i.indkey)
         or pg_get_expr(i.indpred, i.indrelid) ~ ('\\m' || a.attname || '\\M')) order by 1`,
    )
    const indexed = ['flow', 'grp', 'id', 'keep_until', 'line', 'ring_lease', 'ring_ticket', 'rings', 'row', 'tenant']
    expect(rows.map((row) => row.attname)).toEqual(indexed)
  })
})

function keysOf({ claimed }: Pick<SettleAndClaimReply, 'claimed'>): readonly string[] {
  return claimed.map(({ key }) => key)
}

function done({ lane, token }: LeasedRun): Settlement {
  const end = { whileRunning: 'window', keep: 0 } as const
  return { lane, token, outcome: { kind: 'done' }, attempt: undefined, publish: [], ...end }
}
