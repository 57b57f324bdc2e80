// L5g with a maximum: of two claims at the same time, the second waits for the first and counts its runs. Claims of other
// groups and flows do not wait.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { NEVER, systemClock } from '../../src/clock.ts'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'
import type { ClaimRequest, Store, SettleAndClaimReply } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

/** Counts the sessions that wait for the holder, and the sessions that wait for those. */
const WAITING = 'select count(*)::int as n from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
const BEHIND = `select count(*)::int as n from pg_stat_activity a
  where exists (select from unnest(pg_blocking_pids(a.pid)) as b (pid) where pg_backend_pid() = any(pg_blocking_pids(b.pid)))`
let opened = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let ours: Store
  let theirs: Store
  let holder: pg.Client

  beforeEach(async () => {
    const schema = `group_claims_${process.pid}_${opened++}`
    const open = (): Promise<Store> => openPostgresStore({ url, schema, connections: 3, acceptLoss: true })
    ours = await open()
    theirs = await open()
    holder = new pg.Client({ connectionString: url })
    await holder.connect()
    await holder.query(`set search_path = ${schema}`)
  })

  afterEach(async () => {
    await holder.end()
    await Promise.all([ours.close(), theirs.close()])
  })

  async function send(flow: string, lanes: Readonly<Record<string, string>>): Promise<void> {
    const events = Object.entries(lanes).map(([key, group]) =>
      createEventToStore(key, { flow, key, group }, systemClock.now()),
    )
    await ours.append({ routes: 1, events })
  }

  async function count(sql: string): Promise<number> {
    return (await holder.query<{ n: number }>(sql)).rows[0]?.n ?? 0
  }

  /** A call that has decided what it claims, and cannot write it until the test releases it. */
  async function stalled(...claims: readonly Partial<ClaimRequest>[]): Promise<() => Promise<SettleAndClaimReply>> {
    await holder.query(`begin; insert into processes (id, at, request, answer) values ('stalled', 0, 0, '')`)
    const turned = turn(ours, 'stalled', ...claims)
    await expect.poll(() => count(WAITING), { interval: 5 }).toBe(1)
    return async () => {
      await holder.query('rollback')
      return turned
    }
  }

  it('a claim of a group waits for another one that has not committed, and respects the bound', async () => {
    await send('flow', { a0: 'a', a1: 'a', a2: 'a' })
    const letGo = await stalled({ maxPerGroup: 2, maxRuns: 1 })
    const second = turn(theirs, 'second', { maxPerGroup: 2, maxRuns: 3 })
    await expect.poll(() => count(BEHIND), { interval: 5 }).toBe(1)
    expect(keysOf(await letGo())).toEqual(['a0'])
    expect(keysOf(await second)).toEqual(['a1'])
  })

  it('lanes without a group have the same bound', async () => {
    await send('flow', { x: '', y: '' })
    const letGo = await stalled({ maxPerGroup: 1 })
    const second = turn(theirs, 'second', { maxPerGroup: 1 })
    await expect.poll(() => count(BEHIND), { interval: 5 }).toBe(1)
    expect(keysOf(await letGo())).toEqual(['x'])
    expect(keysOf(await second)).toEqual([])
  })

  it('claims of another group, of the same group of another flow, and of groups without a bound do not wait', async () => {
    await send('flow', { 'a served': 'a', a0: 'a' })
    expect(keysOf(await turn(ours, 'p0', { maxPerGroup: 2 }))).toEqual(['a served'])
    const letGo = await stalled({ maxPerGroup: 2 })
    await send('flow', { b0: 'b' })
    await send('other', { a1: 'a' })
    await send('unbounded', { a2: 'a' })
    expect(keysOf(await turn(theirs, 'p1', { flow: 'other', maxPerGroup: 1 }))).toEqual(['a1'])
    expect(keysOf(await turn(theirs, 'p2', { flow: 'unbounded', maxPerGroup: NEVER }))).toEqual(['a2'])
    expect(keysOf(await turn(theirs, 'p3', { maxPerGroup: 2 }))).toEqual(['b0'])
    expect(keysOf(await letGo())).toEqual(['a0'])
  })

  it('two simultaneous claims without a bound take different lanes of one group', async () => {
    await send('flow', { a0: 'a', a1: 'a', a2: 'a' })
    const letGo = await stalled({ maxPerGroup: NEVER })
    const second = turn(theirs, 'second', { maxPerGroup: NEVER })
    await letGo()
    expect(keysOf(await second)).toEqual(['a1'])
  })

  it('claims that name the same groups and flows in different orders do not deadlock', async () => {
    for (const flow of ['one', 'two']) await send(flow, { [`${flow} a`]: 'a', [`${flow} b`]: 'b' })
    const claims = ['one', 'two'].map((flow) => ({ flow, maxPerGroup: 1, maxRuns: 2 }))
    const letGo = await stalled(...claims)
    const second = turn(theirs, 'second', ...claims.toReversed())
    await expect.poll(() => count(BEHIND), { interval: 5 }).toBe(1)
    expect(keysOf(await letGo()).toSorted()).toEqual(['one a', 'one b', 'two a', 'two b'])
    expect(keysOf(await second)).toEqual([])
  })
})

function keysOf({ claimed }: SettleAndClaimReply): readonly string[] {
  return claimed.map(({ key }) => key)
}

function turn(
  store: Store,
  process: string,
  ...claims: readonly Partial<ClaimRequest>[]
): Promise<SettleAndClaimReply> {
  const claim = claims.map((words) => createClaimRequest({ maxRuns: 1, ...words }))
  return store.settleAndClaim({ process, request: 1, routes: 1, settle: [], claim, budget: 64_000_000 })
}
