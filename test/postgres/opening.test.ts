// Tests opening a PostgreSQL store: many at once, an unreachable server, a server that may lose commits, and the clock that
// counts.
import pg from 'pg'
import { afterEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { createEventToStore } from '../conformance/builders.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { buildSessionSql, connect } from '../../src/store/postgres/connections.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { freePort } from '../free-port.ts'
import { transactionPooler } from './transaction-pooler.ts'

let made = 0
const opened: Store[] = []

afterEach(async () => {
  vi.useRealTimers()
  for (const store of opened.splice(0)) await store.close()
})

const schema = (): string => `opening_${process.pid}_${made++}`

describe.each(inject('postgresServers'))('$name', ({ name: server, url, tcpUrl }) => {
  test('ten processes that start at once create one schema', async () => {
    const name = schema()
    const stores = await Promise.all(
      Array.from({ length: 10 }, () => openPostgresStore({ url, schema: name, connections: 1, acceptLoss: true })),
    )
    opened.push(...stores)
    expect(new Set((await Promise.all(stores.map((store) => store.stats()))).map(({ routes }) => routes))).toEqual(
      new Set([1]),
    )
  })

  test('a server whose acknowledged commits do not survive a crash is rejected, with the fix', async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query<{ fsync: string }>('show fsync')
    await client.end()
    const forgetful = openPostgresStore({ url, schema: schema() })
    if (rows[0]?.fsync === 'off') {
      await expect(forgetful).rejects.toMatchObject({
        code: 'STORE_NOT_DURABLE',
        fix: expect.stringContaining('acceptLoss'),
      })
    } else opened.push(await forgetful)
  })

  test('a server that does not wait for its commits is rejected with the name of the setting', async () => {
    const options = encodeURIComponent('-c synchronous_commit=off')
    const address = `${url}${url.includes('?') ? '&' : '?'}options=${options}`
    await expect(openPostgresStore({ url: address, schema: schema() })).rejects.toMatchObject({
      code: 'STORE_NOT_DURABLE',
      message: expect.stringContaining('synchronous_commit = off') as string,
    })
  })

  test.each([
    { server: 'off', acceptLoss: false, has: 'on session' },
    { server: 'on', acceptLoss: false, has: 'on session' },
    { server: 'local', acceptLoss: false, has: 'local session' },
    { server: 'off', acceptLoss: true, has: 'off client' },
  ])(
    '$server ($acceptLoss): commits are synchronous, even if the server setting changes later, unless loss is accepted',
    async (told) => {
      const options = encodeURIComponent(`-c synchronous_commit=${told.server}`)
      const address = `${url}${url.includes('?') ? '&' : '?'}options=${options}`
      const pool = await connect({ url: address, schema: schema(), size: 1, acceptLoss: told.acceptLoss })
      onTestFinished(() => pool.end())
      const { rows } = await pool.query<{ has: string }>(
        `select setting || ' ' || source as has from pg_settings where name = 'synchronous_commit'`,
      )
      expect(rows).toEqual([{ has: told.has }])
    },
  )

  test.each([
    ['a database that is not there', 'nodb', undefined, /database "nodb" does not exist/],
    ['a user that is not there, or a password that is wrong', undefined, 'nobody:wrong', /nobody/],
  ])('%s is refused, and the fix names the address', async (_what, database, user, message) => {
    const address = new URL(tcpUrl)
    if (database !== undefined) address.pathname = database
    if (user !== undefined) [address.username = '', address.password = ''] = user.split(':')
    await expect(openStore(address.href, { acceptLoss: true })).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(message) as string,
      fix: 'Correct the user, the password or the database in the address. Create the database if it does not exist.',
    })
  })

  test('the error for a role without the right to create the schema names the right, or another role', async () => {
    const role = `${schema()}_plain`
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`create role ${role}`)
    onTestFinished(async () => {
      await client.query(`drop role ${role}`)
      await client.end()
    })
    const as = `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent(`-c role=${role}`)}`
    await expect(openPostgresStore({ url: as, schema: schema(), acceptLoss: true })).rejects.toMatchObject({
      code: 'STORE_UNWRITABLE',
      fix: expect.stringContaining('role of the address') as string,
    })
  })

  test('a schema of a newer release stays unchanged', async () => {
    const name = schema()
    await (await openPostgresStore({ url, schema: name, acceptLoss: true })).close()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`update ${name}.meta set schema = 99`)
    await client.end()
    await expect(openPostgresStore({ url, schema: name, acceptLoss: true })).rejects.toMatchObject({
      code: 'STORE_SCHEMA_NEWER',
    })
  })

  test('a process waits for a migration, however long another process takes for it', async () => {
    const name = schema()
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    onTestFinished(() => other.end())
    await other.query('begin')
    await other.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`sluice/schema/${name}`])
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const opening = openPostgresStore({ url, schema: name, acceptLoss: true })
    const waiting = `select count(*)::int as n from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`
    await expect.poll(async () => (await other.query<{ n: number }>(waiting)).rows[0]?.n).toBe(1)
    vi.advanceTimersByTime(600_000)
    vi.useRealTimers()
    await other.query('commit')
    opened.push(await opening)
  })

  // The pooler of the test can log in to our server.
  test.skipIf(server === 'PostgreSQL of DATABASE_URL')(
    'a pooler in transaction mode is rejected before anything is created',
    async () => {
      const name = schema()
      const pooler = await transactionPooler(tcpUrl)
      onTestFinished(() => pooler.close())
      // The second start gets sessions in which the first one has left its statements and settings.
      for (const acceptLoss of [true, true, false]) {
        await expect(openPostgresStore({ url: pooler.url, schema: name, acceptLoss })).rejects.toMatchObject({
          code: 'STORE_POOLER_UNSUPPORTED',
          fix: expect.stringContaining('session mode') as string,
        })
      }
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const { rows } = await client.query<{ found: boolean }>('select to_regnamespace($1) is not null as found', [name])
      await client.end()
      expect(rows).toEqual([{ found: false }])
    },
  )

  test
    .skipIf(server === 'PostgreSQL of DATABASE_URL')
    .each(
      (['used last', 'rested longest'] as const).flatMap((order) =>
        [1, 2, 3, 5].map((sessions) => ({ order, sessions })),
      ),
    )('a pooler with $sessions sessions that all keep our settings is rejected; next: $order', async (scene) => {
    const pooler = await transactionPooler(tcpUrl, scene.order)
    onTestFinished(() => pooler.close())
    const clients = Array.from({ length: scene.sessions }, () => new pg.Client({ connectionString: pooler.url }))
    for (const client of clients) {
      await client.connect()
      await client.query('begin')
      await client.query(buildSessionSql({ schema: 'public', acceptLoss: true }))
    }
    for (const client of clients) await client.query('commit')
    for (const client of clients) await client.end()
    await expect(openPostgresStore({ url: pooler.url, schema: schema(), acceptLoss: true })).rejects.toMatchObject({
      code: 'STORE_POOLER_UNSUPPORTED',
    })
  })

  test('row types that a release lacks are created, and those of another release stay', async () => {
    const name = schema()
    await (await openPostgresStore({ url, schema: name, acceptLoss: true })).close()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const types = async (): Promise<readonly string[]> => {
      const { rows } = await client.query<{ typname: string }>(
        `select typname from pg_type join pg_class c on c.oid = typrelid where c.relkind = 'c' and typnamespace = $1::regnamespace`,
        [name],
      )
      return rows.map(({ typname }) => typname).toSorted()
    }
    const ours = await types()
    const events = ours.find((type) => type.startsWith('add_events_'))
    await client.query(`alter type ${name}.${events} rename to add_events_of_another_release`)
    const store = await openPostgresStore({ url, schema: name, acceptLoss: true })
    opened.push(store)
    expect(await types()).toEqual([...ours, 'add_events_of_another_release'].toSorted())
    await client.end()
    const { results } = await store.append({ routes: 1, events: [createEventToStore('a', { key: 'k' }, Date.now())] })
    expect(results).toEqual([{ kind: 'stored' }])
  })

  test('the clock of the server counts, not that of the process', async () => {
    const store = await openPostgresStore({ url, schema: schema(), acceptLoss: true })
    opened.push(store)
    const truth = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: truth + 3_600_000 })
    const { now } = await store.stats()
    expect(Math.abs(now - truth)).toBeLessThan(600_000)
  })

  test('an address may name the schema', async () => {
    const name = schema()
    const first = await openPostgresStore({ url, schema: name, acceptLoss: true })
    opened.push(first)
    const writes = [{ kind: 'note', id: 'a', ifRev: 0, body: Buffer.from('here') }]
    await first.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    const found = async (address: string): Promise<readonly string[]> => {
      const store = await openStore(address, { acceptLoss: true })
      opened.push(store)
      const { docs } = await store.readDocs({ kind: 'note', ids: undefined, after: '', n: 10 })
      return docs.map(({ body }) => Buffer.from(body).toString())
    }
    const and = url.includes('?') ? '&' : '?'
    expect(await found(`${url}${and}schema=${name}`)).toEqual(['here'])
    expect(await found(`${url}${and}schema=${schema()}`)).toEqual([])
  })
})

test('a server that cannot be reached is reported as unreachable', async () => {
  const port = await freePort()
  await expect(openPostgresStore({ url: `postgres://nobody@127.0.0.1:${port}/none` })).rejects.toMatchObject({
    code: 'STORE_UNREACHABLE',
    status: 503,
  })
})
