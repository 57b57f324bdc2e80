// The other side of row-level security: the owner works without limits, no other role opens the store, and earlier readers can
// read what a new release adds.
import { describe, expect, inject, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { fill, readerScene } from './reader-scene.ts'

/** Tables whose rows readers may read. A new table must be listed here or among the others. */
const READ = ['events', 'lanes', 'letters', 'limits', 'marks', 'pauses', 'places', 'readers', 'receipts', 'runs']
const HIDDEN = [
  'audit',
  'docs',
  'limit_pages',
  'meta',
  'outbox',
  'permits',
  'pressure',
  'processes',
  'replays',
  'served',
  'shown',
  'stored_bytes',
  'tickets',
  'waits',
]

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  test('every table has row security, and for every table it is declared whether readers may read it', async () => {
    const { admin } = await readerScene(url)
    const { rows } = await admin.query<{ name: string; isSecured: boolean; isRead: boolean; isForced: boolean }>(
      `select c.relname as name, c.relrowsecurity as "isSecured", c.relforcerowsecurity as "isForced",
         exists (select 1 from pg_policy p where p.polrelid = c.oid and p.polname = 'reader') as "isRead"
       from pg_class c where c.relnamespace = current_schema::regnamespace and c.relkind = 'r' order by 1`,
    )
    expect(rows.filter(({ isSecured, isForced }) => !isSecured || isForced)).toEqual([])
    expect(rows.filter(({ isRead }) => isRead).map(({ name }) => name)).toEqual(READ)
    expect(rows.filter(({ isRead }) => !isRead).map(({ name }) => name)).toEqual(HIDDEN)
  })

  test('an app works with a role that only owns its schema', async () => {
    const { store } = await readerScene(url)
    const ran = Promise.withResolvers<unknown>()
    const app = new Sluice({ store, log: false })
    app.flow('paid', { on: 'order.paid', run: (run) => ran.resolve(run.events.map(({ data }) => data)) })
    await app.start()
    await app.publish({ type: 'order.paid', tenant: 't1', data: 7 })
    expect(await ran.promise).toEqual([7])
    await app.stop()
  })

  test('only the owner, or a member of it, opens the store', async () => {
    const { admin, schema, owner, role, open, as } = await readerScene(url)
    const other = await role('other')
    // Grants everything that can be granted.
    await admin.query(`grant all on schema ${schema} to ${other}; grant all on all tables in schema ${schema} to ${other};
      grant all on all sequences in schema ${schema} to ${other}`)
    await expect(open(other)).rejects.toMatchObject({
      code: 'STORE_UNWRITABLE',
      message: expect.stringContaining(`belongs to the role ${owner}`),
      fix: 'Connect as that role, or as one that it was granted to.',
    })
    expect(await (await as(other))('select * from meta')).toEqual([])
    await admin.query(`grant ${owner} to ${other}`)
    expect((await (await open(other)).stats()).routes).toBe(1)
  })

  test('objects of a later release are readable for existing readers, and for nobody else', async () => {
    const { admin, schema, owner, role, open, as } = await readerScene(url)
    const [bi, other] = [await role('bi'), await role('other')]
    await admin.query(`select grant_reader('${bi}', 't1'); grant usage on schema ${schema} to ${other}`)
    // A role that was a reader, was dropped, and was created again: only its name is the same.
    await admin.query(`insert into readers values ('${other}', null, true)`)
    await admin.query(`set role ${owner}; create table news (tenant text); alter table news enable row level security;
      create policy reader on news for select using ((select sees_every_tenant()) or tenant = any ((select seen_tenants())::text[]));
      create table secrets (tenant text); drop view work; create view work as select 1 as one; reset role`)
    await admin.query(`insert into news values ('t1'), ('t2'); insert into secrets values ('t1')`)
    const ask = await as(bi)
    for (const table of ['news', 'work'])
      await expect(ask(`select * from ${table}`)).rejects.toMatchObject({ code: '42501' })
    await open(owner)
    expect(await ask('select * from news')).toEqual([{ tenant: 't1' }])
    expect(await ask('select * from work')).toEqual([])
    await expect(ask('select * from secrets')).rejects.toMatchObject({ code: '42501' })
    await expect((await as(other))('select * from news')).rejects.toMatchObject({ code: '42501' })
  })

  test('ten processes that start at once while readers are granted leave all of them readers', async () => {
    const { admin, schema, store, owner, role, open, as } = await readerScene(url)
    await fill(store)
    const roles: string[] = []
    for (let n = 0; n < 5; n++) roles.push(await role(`bi${n}`))
    await admin.query(`comment on view work is 'of another release'`)
    const granting = await Promise.all(roles.map(() => as(owner)))
    await Promise.all([
      ...Array.from({ length: 10 }, () => open(owner)),
      ...granting.map((ask, n) => ask(`select ${schema}.grant_reader('${roles[n]}', 't1')`)),
    ])
    for (const name of roles) expect(await (await as(name))('select event from work')).toHaveLength(5)
  })
})
