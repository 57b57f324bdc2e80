// A lane that is claimed stays where it stands in the index. Nobody may take it for ready there, its lease has to be heard of all
// the same, and what runs for long must not be passed by for ever.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { claimOf, newEvent } from '../../src/store/conformance/vocabulary.ts'
import type { Lease, Settle, Store, TurnReply } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const LEASE = 60_000

describe.each(inject('postgresServers'))('$name', ({ url, name }) => {
  const schema = `claims_${process.pid}_${name.replaceAll(/\W/g, '').toLowerCase()}`
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
  })
  afterAll(async () => {
    await Promise.all([here.close(), there.close(), onlooker.end()])
  })

  function send(flow: string, keys: readonly string[]): Promise<unknown> {
    return here.append({ routes: 1, events: keys.map((key) => newEvent(key, { flow, key, quiet: 0 }, clock.now())) })
  }

  function turn(store: Store, flow: string, slots: number, settle: readonly Settle[] = []): Promise<TurnReply> {
    const claim = [claimOf({ flow, slots, lease: LEASE })]
    const process = store === here ? 'here' : 'there'
    return store.turn({ process, request: ++request, routes: 1, settle, claim, budget: 64_000_000 })
  }

  /** How many stand before their deadlines. */
  async function early(flow: string): Promise<number> {
    const { rows } = await onlooker.query<{ n: string }>(
      'select count(*) as n from lanes where flow = $1 and rings < due',
      [flow],
    )
    return Number(rows[0]?.n)
  }

  it('others pass it by and serve who comes after it', async () => {
    await send('pass', ['a', 'b', 'c', 'd'])
    expect(keysOf(await turn(here, 'pass', 2))).toEqual(['a', 'b'])
    expect(await early('pass')).toBe(2)
    expect(keysOf(await turn(there, 'pass', 1))).toEqual(['c'])
    expect(keysOf(await turn(here, 'pass', 5))).toEqual(['d'])
    const rest = await turn(there, 'pass', 5)
    expect(rest).toMatchObject({ claimed: [], heads: [{ flow: 'pass', due: clock.now() + LEASE }] })
  })

  it('it is found when its lease is over, by whoever looks, and the figures count it until then', async () => {
    await send('lapse', ['a', 'b'])
    await turn(here, 'lapse', 1)
    const live = async (): Promise<unknown> => (await there.stats()).flows.find(({ flow }) => flow === 'lapse')
    expect(await live()).toMatchObject({ live: 1, due: clock.now() })
    expect(keysOf(await turn(there, 'lapse', 1))).toEqual(['b'])
    expect(await live()).toMatchObject({ live: 2, due: clock.now() + LEASE })
    clock.advance(LEASE - 1)
    expect(keysOf(await turn(there, 'lapse', 5))).toEqual([])
    clock.advance(1)
    expect(await live()).toMatchObject({ live: 0, due: clock.now() })
    expect(keysOf(await turn(there, 'lapse', 5))).toEqual(['a', 'b'])
  })

  it('one that runs for long is put at the end of its lease, and counts as running there too', async () => {
    await send('long', ['long'])
    const { claimed } = await turn(here, 'long', 1)
    expect(await early('long')).toBe(1)
    for (let n = 0; n < 17; n++) {
      await send('long', [`short ${n}`])
      const next = await turn(here, 'long', 1)
      expect(keysOf(next)).toEqual([`short ${n}`])
      await turn(here, 'long', 0, next.claimed.map(done))
    }
    expect(await early('long')).toBe(0)
    const stats = await there.stats()
    expect(stats.flows.find(({ flow }) => flow === 'long')).toMatchObject({ live: 1, due: clock.now() + LEASE })
    const { settled, heads } = await turn(here, 'long', 1, claimed.map(done))
    expect({ settled, heads }).toEqual({ settled: ['ok'], heads: [{ flow: 'long', due: undefined }] })
  })

  it('five hundred that run do not hide one that comes due behind them', async () => {
    const many = Array.from({ length: 500 }, (_, n) => `run ${n}`)
    await send('many', many)
    expect((await turn(here, 'many', 500)).claimed).toHaveLength(500)
    expect(await early('many')).toBe(500)
    const events = [newEvent('late', { flow: 'many', key: 'late', quiet: 5_000 }, clock.now())]
    await here.append({ routes: 1, events })
    const due = clock.now() + 5_000
    expect((await turn(there, 'many', 3)).heads).toEqual([{ flow: 'many', due }])
    expect((await there.stats()).flows.find(({ flow }) => flow === 'many')).toMatchObject({ due, live: 500 })
    clock.advance(5_000)
    expect((await there.stats()).flows.find(({ flow }) => flow === 'many')).toMatchObject({ due })
    expect(keysOf(await turn(there, 'many', 3))).toEqual(['late'])
  })

  it('what arrives while it runs is served after it', async () => {
    await send('again', ['k'])
    const first = await turn(here, 'again', 1)
    const second = newEvent('second', { flow: 'again', key: 'k', quiet: 0 }, clock.now())
    await there.append({ routes: 1, events: [second] })
    expect(keysOf(await turn(there, 'again', 1))).toEqual([])
    const next = await turn(here, 'again', 1, first.claimed.map(done))
    expect(next).toMatchObject({ settled: ['ok'], claimed: [{ key: 'k', events: [{ id: second.id }] }] })
  })

  it('no index has to know of a claim, nor of a push: whatever column of one of them changes makes both dear', async () => {
    const { rows } = await onlooker.query<{ attname: string }>(
      `select distinct a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid
       where i.indrelid = 'lanes'::regclass and (a.attnum = any(i.indkey)
         or pg_get_expr(i.indpred, i.indrelid) ~ ('\\m' || a.attname || '\\M')) order by 1`,
    )
    const indexed = ['flow', 'grp', 'id', 'keep_until', 'line', 'ring_lease', 'ring_ticket', 'rings', 'row', 'tenant']
    expect(rows.map((row) => row.attname)).toEqual(indexed)
  })
})

function keysOf({ claimed }: TurnReply): readonly string[] {
  return claimed.map(({ key }) => key)
}

function done({ lane, token }: Lease): Settle {
  const end = { whileRunning: 'window', keep: 0 } as const
  return { lane, token, outcome: { kind: 'done' }, attempt: undefined, publish: [], ...end }
}
