// Tests optimistic appends, which the server rejects if the cache was stale. After any change by another process, no event is
// lost, stored twice or out of order.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { laneId } from '../../src/model/identity.ts'
import { createClaimRequest, done, createEventToStore } from '../conformance/builders.ts'
import type { AppendReply, LeasedRun, EventToStore, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

const SETTLED = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const

/** The statements that are sent to the server. */
const sent: string[] = []
// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const { query } = pg.Client.prototype
let opened = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let schema: string
  let ours: Store
  let theirs: Store
  let request = 0

  beforeEach(async () => {
    schema = `guesses_${process.pid}_${opened++}`
    const open = (): Promise<Store> => openPostgresStore({ url, schema, connections: 3, acceptLoss: true })
    ours = await open()
    theirs = await open()
    pg.Client.prototype.query = function (this: pg.Client, ...given: readonly unknown[]) {
      const [config] = given as readonly [string | { readonly text: string }]
      sent.push(typeof config === 'string' ? config : config.text)
      return (query as (...all: unknown[]) => unknown).apply(this, [...given])
    } as typeof query
  })

  afterEach(async () => {
    pg.Client.prototype.query = query
    await Promise.all([ours.close(), theirs.close()])
  })

  async function runs(by: Store, settle: readonly LeasedRun[] = []): Promise<readonly LeasedRun[]> {
    const reply = await by.settleAndClaim({
      process: by === ours ? 'ours' : 'theirs',
      request: ++request,
      routes: 1,
      settle: settle.map(({ lane, token }) => ({ ...SETTLED, lane, token })),
      claim: [createClaimRequest()],
      budget: 64_000_000,
    })
    expect(reply.settled).toEqual(settle.map(() => 'ok'))
    return reply.claimed
  }

  it('an append to a cached lane reads no row, and takes one round trip', async () => {
    await acquaint(ours, 'k')
    const statements = await statementsOf(() => send(ours, ['third'], 'k'))
    expect(statements[0]).toBe('begin')
    expect(statements.at(-1)).toBe('commit')
    expect(statements.filter((sql) => /from (lanes|events|identities)/.test(sql))).toEqual([])
    // The other process does not have the lane in its cache, and its append is rejected first.
    const theirsSent = await statementsOf(() => send(theirs, ['fourth'], 'k'))
    expect(theirsSent.some((sql) => sql.includes('from lanes where id = any'))).toBe(true)
    expect(namesIn(await runs(ours))).toEqual(['k first', 'k second', 'third', 'fourth'])
  })

  it('two processes that append to one lane in turns store each event once, in the order of arrival', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `event ${n}`)
    for (const [n, name] of names.entries())
      expect(await send(n % 2 === 0 ? ours : theirs, [name], 'k')).toEqual(['stored'])
    expect(namesIn(await runs(theirs))).toEqual(names)
  })

  it('a lane that another process emptied and created again is not mistaken for the old one', async () => {
    await acquaint(ours, 'k')
    const claimed = await runs(theirs)
    expect(await runs(theirs, claimed)).toEqual([])
    await send(theirs, ['new, theirs'], 'k')
    // The new lane has been written as often as the deleted one.
    await send(theirs, ['new again, theirs'], 'k')
    await send(ours, ['new, ours'], 'k')
    expect(namesIn(await runs(ours))).toEqual(['new, theirs', 'new again, theirs', 'new, ours'])
  })

  it('an append does not undo a run that another process has started', async () => {
    await acquaint(ours, 'k')
    const claimed = await runs(theirs)
    await send(ours, ['during the run'], 'k')
    expect(await runs(ours)).toEqual([])
    expect(namesIn(await runs(theirs, claimed))).toEqual(['during the run'])
  })

  it('an append to waiting events writes only these, and another process finds all changes', async () => {
    const MINUTE = 60_000
    const lane = laneId('flow', 'k')
    const window = (quiet: number, max: number): EventToStore =>
      createEventToStore('windowed', { key: 'k', quiet: quiet * MINUTE, max: max * MINUTE }, systemClock.now())
    await append(ours, [window(60, 120)])
    await append(ours, [window(60, 120)])
    const joins = await statementsOf(() => append(ours, [window(60, 120)]))
    expect(joins.filter((sql) => sql.includes('update lanes'))).toHaveLength(1)
    expect(joins.some((sql) => /update lanes.*\b(cap|rest|rings) = /.test(sql))).toBe(false)
    // This event also moves the deadline back, but not as far.
    await append(ours, [window(180, 90)])
    await append(theirs, [window(180, 180)])
    const { item } = await theirs.get({ kind: 'lanes', id: lane })
    expect(item?.waiting).toBe(5)
    expect((item?.due ?? 0) - systemClock.now()).toBeLessThanOrEqual(90 * MINUTE)
  })

  it('an event that another process has stored is a duplicate, and the rest of the batch is stored', async () => {
    await acquaint(ours, 'k')
    const same = event('same', 'k')
    expect(await append(theirs, [same])).toEqual(['stored'])
    const again = { ...event('same', 'k'), identity: same.identity }
    expect(await append(ours, [again, event('other', 'k')])).toEqual(['duplicate', 'stored'])
    expect(await append(ours, [same])).toEqual(['repeated'])
  })

  it('an append that cannot be written is not written in part, optimistic or not, and the process continues', async () => {
    await acquaint(ours, 'known')
    for (const key of ['known', 'unknown']) {
      const broken = { ...event('broken', key), body: 'no bytes' as unknown as Uint8Array }
      // Lanes are written before events.
      await expect(append(ours, [event('its neighbour', key), broken])).rejects.toMatchObject({
        code: 'STORE_FAILED',
      })
      expect(await send(ours, ['next'], key)).toEqual(['stored'])
      expect(await send(theirs, ['theirs'], key)).toEqual(['stored'])
      const { item } = await theirs.get({ kind: 'lanes', id: laneId('flow', key) })
      expect(item?.waiting).toBe(key === 'known' ? 4 : 2)
    }
    const names = namesIn(await runs(ours)).toSorted()
    expect(names).toEqual(['known first', 'known second', 'next', 'next', 'theirs', 'theirs'])
  })

  it('routes that another process has changed are respected', async () => {
    await acquaint(ours, 'k')
    await theirs.writeDocs({ writes: [], raiseRoutes: true, audit: undefined })
    expect(await send(ours, ['by old routes'], 'k')).toEqual(['routes-old'])
    expect(namesIn(await runs(ours))).toEqual(['k first', 'k second'])
  })

  it('an append that depends on a rejected one is rejected too, whatever was written in between', async () => {
    const [first = '', second = ''] = ['k', 'l'].toSorted((one, other) =>
      laneId('flow', one) < laneId('flow', other) ? -1 : 1,
    )
    await acquaint(ours, first)
    await acquaint(ours, second)
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    await holder.query(`set search_path = ${schema}`)
    await holder.query('begin')
    await holder.query('select from lanes where id = $1 for update', [laneId('flow', first)])
    const both = append(ours, [event('ours', first), event('ours too', second)])
    const onThat = send(ours, ['ours after that'], second)
    const waiting = 'select count(*) as n from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
    await expect.poll(async () => (await holder.query<{ n: string }>(waiting)).rows[0]?.n, { interval: 5 }).toBe('1')
    // The lane has now been written as often as the pending append would have left it. That append is about to be rejected.
    const claimed = await runs(theirs)
    expect(namesIn(claimed)).toEqual([`${second} first`, `${second} second`])
    await holder.query('update lanes set rev = 7 where id = $1', [laneId('flow', first)])
    await holder.query('commit')
    await holder.end()
    expect([await both, await onThat]).toEqual([['stored', 'stored'], ['stored']])
    const others = [`${first} first`, `${first} second`, 'ours']
    expect(namesIn(await runs(theirs, claimed)).toSorted()).toEqual(
      [...others, 'ours too', 'ours after that'].toSorted(),
    )
  })

  it('after a lost connection the cache is empty, because the server may have forgotten numbers that it issued', async () => {
    const address = `${url}${url.includes('?') ? '&' : '?'}application_name=${schema}`
    const lost = await openPostgresStore({ url: address, schema, connections: 3, acceptLoss: true })
    onTestFinished(() => lost.close())
    await acquaint(lost, 'k')
    await send(lost, ['third'], 'k')
    const believes = await statementsOf(() => send(lost, ['fourth'], 'k'))
    expect(believes.some((sql) => sql.includes('nextval'))).toBe(false)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const ended = 'select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = $1'
    await client.query(ended, [schema])
    await client.end()
    await expect.poll(() => lost.stats().catch(() => undefined)).toBeDefined()
    const asks = await statementsOf(() => send(lost, ['fifth'], 'k'))
    expect(asks.some((sql) => sql.includes('nextval'))).toBe(true)
    expect(asks.some((sql) => sql.includes('from lanes where id = any'))).toBe(true)
  })

  it('many simultaneous appends of two processes are all stored, once', async () => {
    await Promise.all([acquaint(ours, 'k'), acquaint(theirs, 'k')])
    const all = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        send(n % 2 === 0 ? ours : theirs, [`${n % 2}/${n}`], n % 3 === 0 ? 'k' : 'l'),
      ),
    )
    expect(new Set(all.flat())).toEqual(new Set(['stored']))
    const names = namesIn(await runs(ours)).filter((name) => name.includes('/'))
    expect(names).toHaveLength(60)
    expect(new Set(names).size).toBe(60)
  })
})

/** The statements of one round trip. */
async function statementsOf(act: () => Promise<unknown>): Promise<readonly string[]> {
  sent.length = 0
  await act()
  return sent.map((sql) => sql.trim().replaceAll(/\s+/g, ' '))
}

/** Waits until the process has numbers in reserve and the lane in its cache. */
async function acquaint(by: Store, key: string): Promise<void> {
  await send(by, [`${key} first`], key)
  await send(by, [`${key} second`], key)
}

async function send(by: Store, names: readonly string[], key: string): Promise<readonly string[]> {
  return append(
    by,
    names.map((name) => event(name, key)),
  )
}

function event(name: string, key: string): EventToStore {
  return createEventToStore(name, { key }, systemClock.now())
}

async function append(by: Store, events: readonly EventToStore[]): Promise<readonly string[]> {
  const { results }: AppendReply = await by.append({ routes: 1, events })
  return results.map(({ kind }) => kind)
}

function namesIn(claimed: readonly LeasedRun[]): readonly string[] {
  return claimed.flatMap(({ events }) => events.map(({ body }) => textOf(body)))
}

function textOf(body: Uint8Array | undefined): string {
  return Buffer.from(body ?? []).toString()
}
