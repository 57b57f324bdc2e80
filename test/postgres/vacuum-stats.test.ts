// Tests that dead rows, and the sessions that keep vacuum from removing them, are reported as metrics and raised as an alert.
// The tests use their own database, because every transaction in the same one is seen.
import { once } from 'node:events'
import { createConnection } from 'node:net'
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { alerts, Sluice, type SnapshotHolder, type Store } from '../../src/index.ts'
import { describeSnapshotHolder } from '../../src/model/vacuum-stats.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { startServer } from './server.ts'
import { standby } from './standby.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function connect(url: string, name = 'tests'): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name })
  await client.connect()
  ends.push(() => client.end())
  return client
}

let made = 0

/** Creates a database that no other test uses, and returns its address. */
async function database(url: string): Promise<string> {
  const name = `vacuum_stats_${process.pid}_${made++}`
  const client = await connect(url)
  await client.query(`create database ${name}`)
  ends.push(() => client.query(`drop database ${name} with (force)`))
  return url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
}

async function open(url: string, clock: Clock): Promise<Store> {
  const store = await openPostgresStore({ url, clock, acceptLoss: true })
  ends.push(() => store.close())
  return store
}

/** The same address for a role that may only own a schema there. */
async function ordinary(url: string): Promise<string> {
  const admin = await connect(url)
  const role = `vacuum_stats_${process.pid}_${made++}`
  await admin.query(`create role ${role}`)
  ends.push(() => admin.query(`drop owned by ${role}; drop role ${role}`))
  await admin.query(`do $$ begin execute format('grant create on database %I to ${role}', current_database()); end $$`)
  return `${url}${url.includes('?') ? '&' : '?'}options=-c%20role%3D${role}`
}

/** Opens a transaction with a snapshot, and returns its process id. */
async function hold(url: string): Promise<{ readonly client: pg.Client; readonly pid: string }> {
  const client = await connect(url, 'report')
  await client.query('begin isolation level repeatable read')
  const { rows } = await client.query<{ pid: string }>('select pg_backend_pid()::text as pid')
  return { client, pid: rows[0]?.pid ?? '' }
}

/** Opens a connection that never sends its password. The server has begun a transaction for it, to look the role up. */
async function halfConnect(url: string): Promise<void> {
  const { host, port, user } = new pg.Client({ connectionString: url })
  const socket = host.startsWith('/') ? createConnection(`${host}/.s.PGSQL.${port}`) : createConnection(port, host)
  ends.push(async () => socket.destroy())
  const body = Buffer.from(`\0\0\0\0\0\x03\0\0user\0${user}\0database\0postgres\0\0`)
  body.writeInt32BE(body.length)
  socket.write(body)
  await once(socket, 'data')
}

async function ageOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ age: number }>(
    'select extract(epoch from clock_timestamp() - now())::float8 * 1000 as age',
  )
  return rows[0]?.age ?? 0
}

/** Reads the current values, not the cached ones. */
async function oldest(store: Store, clock: VirtualClock): Promise<SnapshotHolder | undefined> {
  clock.advance(10_000)
  return (await store.stats()).vacuum?.oldestSnapshot
}

describe.each(inject('postgresServers'))('$name', ({ url: server }) => {
  test('the oldest open snapshot is reported with its age and its owner, until it ends', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    const { client, pid } = await hold(url)
    const before = await ageOf(client)
    const found = await oldest(store, clock)
    expect(found).toMatchObject({ kind: 'session', name: pid, application: 'report', state: 'idle in transaction' })
    expect(found?.age).toBeGreaterThanOrEqual(before)
    expect(found?.age).toBeLessThanOrEqual(await ageOf(client))
    expect(found?.isMinimumAge).toBe(false)
    await client.query('commit')
    expect((await oldest(store, clock))?.name).not.toBe(pid)
  })

  test('a transaction that wrote is reported too; one that neither wrote nor holds a snapshot is not', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    const client = await connect(url, 'report')
    await client.query('begin')
    await client.query('select 1')
    expect((await oldest(store, clock))?.application).not.toBe('report')
    await client.query('create temporary table t (n int)')
    expect((await oldest(store, clock))?.application).toBe('report')
  })

  test('a client that still connects, to any database, is not reported', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    await halfConnect(server)
    expect((await oldest(store, clock))?.state).not.toBe('starting')
  })

  test('a transaction in another database does not hold back this one', async () => {
    const [url, other] = [await database(server), await database(server)]
    const clock = new VirtualClock()
    const store = await open(url, clock)
    await hold(other)
    expect((await oldest(store, clock))?.application).not.toBe('report')
  })

  test('a long vacuum holds nothing back', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    const [admin, client] = [await connect(url), await connect(url, 'report')]
    await admin.query('create table wide as select repeat(md5(n::text), 50) as text from generate_series(1, 10000) n')
    await admin.query('delete from wide')
    await client.query('set vacuum_cost_delay = 100; set vacuum_cost_limit = 1')
    const over = client.query('vacuum wide').catch(() => {})
    const seen = `select 1 from pg_stat_activity where application_name = 'report' and backend_xmin is not null`
    await expect.poll(async () => (await admin.query(seen)).rowCount).toBe(1)
    expect((await oldest(store, clock))?.application).not.toBe('report')
    expect((await admin.query(seen)).rowCount).toBe(1)
    await admin.query(`select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'report'`)
    await over
  })

  test('a role that may not see other sessions reports at least how long a snapshot has been open', async () => {
    const url = await database(server)
    const admin = await connect(url)
    const clock = new VirtualClock()
    const store = await open(await ordinary(url), clock)
    const { client, pid } = await hold(url)
    expect((await oldest(store, clock))?.age).toBeLessThan(10_000)
    // The server's own snapshot in a new database may have been seen at the same time.
    let found = await oldest(store, clock)
    let looks = 1
    for (; looks < 50 && found?.name !== pid; looks++) found = await oldest(store, clock)
    expect(found).toMatchObject({ kind: 'session', name: pid, state: '', age: looks * 10_000, isMinimumAge: true })
    // Another transaction of the same session starts a new age. Other sessions on the server may have older snapshots than
    // both.
    const asOf = async (): Promise<unknown> =>
      (await admin.query('select backend_xmin::text as xmin from pg_stat_activity where pid = $1', [pid])).rows
    const before = await asOf()
    const another = async (): Promise<unknown> => {
      await client.query('commit')
      await admin.query('select txid_current()')
      await client.query('begin isolation level repeatable read')
      await client.query('select 1')
      return asOf()
    }
    await expect.poll(another).not.toEqual(before)
    expect((await oldest(store, clock))?.age).toBeLessThan(10_000)
  })

  test('without permission to read the statistics, the other stats still work', async () => {
    const url = await database(server)
    const admin = await connect(url)
    await admin.query('revoke select on pg_catalog.pg_prepared_xacts from public')
    const store = await open(await ordinary(url), new VirtualClock())
    const stats = await store.stats()
    expect(stats).toMatchObject({ deadLetters: 0 })
    expect(stats.vacuum).toBeUndefined()
  })

  test('dead rows are reported by table, and read at most every ten seconds', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    const dead = async (): Promise<number> => {
      const rows = (await store.stats()).vacuum?.deadRows ?? {}
      expect(Object.keys(rows)).toEqual(expect.arrayContaining(['lanes', 'places', 'events']))
      return rows['lanes'] ?? -1
    }
    expect(await dead()).toBe(0)
    await store.append({
      routes: 1,
      events: [createEventToStore('e', { id: 'e', key: 'k', quiet: 1_000, max: 1_000 }, 0)],
    })
    const admin = await connect(url)
    await admin.query('update sluice.lanes set flow = flow')
    await admin.query('create table sluice.parted (n int) partition by list (n)')
    await admin.query('create table sluice.parted_1 partition of sluice.parted for values in (1)')
    await admin.query('select pg_stat_force_next_flush()')
    expect(await dead()).toBe(0)
    clock.advance(9_999)
    expect(await dead()).toBe(0)
    clock.advance(1)
    await expect.poll(async () => (clock.advance(10_000), dead())).toBeGreaterThanOrEqual(1)
    const tables = Object.keys((await store.stats()).vacuum?.deadRows ?? {})
    expect(tables.filter((name) => name.startsWith('parted'))).toEqual(['parted'])
  })

  test('the metrics contain both; the alert is raised while the transaction is open, and cleared afterwards', async () => {
    const url = await database(server)
    const clock = new VirtualClock()
    const store = await open(url, clock)
    const app = new Sluice({ store, clock, log: false })
    const told: string[] = []
    app.alert('snapshot', { when: alerts.oldSnapshot({ above: '1s' }) })
    app.on('alert.raised', ({ alert, text }) => alert === 'snapshot' && told.push(text))
    app.on('alert.cleared', ({ alert }) => alert === 'snapshot' && told.push('cleared'))
    await app.start()
    ends.push(() => app.stop())
    const pace = await connect(url)
    const until = async (n: number): Promise<void> => {
      while (told.length < n) {
        clock.advance(10_000)
        await pace.query('select pg_sleep(0.05)')
      }
    }
    const { client, pid } = await hold(url)
    await until(1)
    expect(told[0]).toContain(`Session ${pid} (of report, by `)
    expect(told[0]).toContain(`select pg_terminate_backend(${pid})`)
    const lines = (await app.admin.metrics()).split('\n').filter((line) => /^sluice_store_(dead|oldest)/.test(line))
    expect(lines).toContainEqual(expect.stringMatching(/^sluice_store_dead_rows\{table="lanes"\} \d+$/))
    const [, age] = lines.find((line) => line.startsWith('sluice_store_oldest_snapshot_seconds '))?.split(' ') ?? []
    expect(Number(age)).toBeGreaterThan(1)
    expect(told).toHaveLength(1)
    await client.query('commit')
    await until(2)
    expect(told[1]).toBe('cleared')
  })
})

test('a prepared transaction and a standby with a slot are reported like sessions', async () => {
  const settings = { max_prepared_transactions: '2', fsync: 'off' }
  const own = await startServer({ version: 18, settings })
  ends.push(() => own.stop())
  const { url } = own
  const clock = new VirtualClock()
  const store = await open(url, clock)
  const admin = await connect(url)
  await admin.query('begin')
  await admin.query('create table left_over (n int)')
  await admin.query(`prepare transaction 'it''s late'`)
  expect(await oldest(store, clock)).toMatchObject({ kind: 'prepared', name: "it's late", isMinimumAge: false })
  await admin.query(`rollback prepared 'it''s late'`)
  await admin.query(`select pg_create_physical_replication_slot('copy', true)`)
  const { rows } = await admin.query<{ xid: string }>(`select pg_current_xact_id()::text as xid`)
  ends.push(await standby(url, 'copy', Number(rows[0]?.xid)))
  await expect
    .poll(async () => (await admin.query('select xmin from pg_replication_slots where xmin is not null')).rowCount)
    .toBe(1)
  // A slot that is up to date keeps no rows.
  expect((await oldest(store, clock))?.kind).not.toBe('slot')
  for (let n = 0; n < 3; n++) await admin.query('select pg_current_xact_id()')
  expect((await oldest(store, clock))?.age).toBeLessThan(10_000)
  expect(await oldest(store, clock)).toMatchObject({ kind: 'slot', name: 'copy', age: 10_000, isMinimumAge: true })
})

test('the text for each kind says how to end it', () => {
  const holder = { kind: 'session', name: '7', application: '', user: '', state: '', age: 31_400 } as const
  expect(describeSnapshotHolder({ ...holder, isMinimumAge: true })).toMatch(
    /^Session 7 has had a transaction open for at least 31 s: .*pg_terminate_backend\(7\)\.$/,
  )
  expect(describeSnapshotHolder({ ...holder, kind: 'prepared', name: "it's", isMinimumAge: false })).toContain(
    "rollback prepared 'it''s'.",
  )
  expect(describeSnapshotHolder({ ...holder, kind: 'slot', name: 'copy', isMinimumAge: true })).toContain(
    "pg_drop_replication_slot('copy').",
  )
})
