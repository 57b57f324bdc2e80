// The role that runs the store owns its schema. A reader sees the rows of its tenant, changes nothing and sees no secret. A
// role that was not made a reader sees nothing.
import { readFileSync } from 'node:fs'
import { describe, expect, inject, test } from 'vitest'
import { createEventToStore, createPlacement } from '../conformance/builders.ts'
import { fill, readerScene } from './reader-scene.ts'

const READ = ['events', 'lanes', 'letters', 'limits', 'marks', 'pauses', 'places', 'readers', 'receipts', 'runs']
const DENIED = { code: '42501' }
const refused = (code: string): object => ({ code, hint: expect.any(String) })

const WORDS = 'select event, status from work order by 1'
const rowsOf = (rows: readonly Record<string, unknown>[]): readonly unknown[] => rows.map(Object.values)
const wordsOf = (tenant: string): readonly unknown[] => [
  [`${tenant}-dead`, 'dead_letter'],
  [`${tenant}-done`, 'completed'],
  [`${tenant}-lost`, 'unrouted'],
  [`${tenant}-runs`, 'running'],
  [`${tenant}-waits`, 'pending'],
]

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  test('a role for one tenant sees its rows, in the view and the tables, and cannot choose another tenant', async () => {
    const { store, admin, role, as } = await readerScene(url)
    await fill(store)
    const bi = await role('bi')
    await admin.query(`select grant_reader('${bi}', 't1')`)
    const ask = await as(bi)
    expect(rowsOf(await ask(WORDS))).toEqual(wordsOf('t1'))
    await ask(`set sluice.tenant = 't2'`)
    expect(rowsOf(await ask(WORDS))).toEqual(wordsOf('t1'))
    for (const table of ['events', 'lanes', 'runs', 'letters']) {
      expect([table, await ask(`select distinct tenant from ${table}`)]).toEqual([table, [{ tenant: 't1' }]])
    }
    for (const table of ['receipts', 'marks']) {
      const sql = `select e.id from ${table} join events e on e.seq = event`
      expect([table, await ask(sql)]).toEqual([table, [{ id: table === 'marks' ? 't1-lost' : 't1-done' }]])
      expect(await ask(`select count(*)::int as n from ${table}`)).toEqual([{ n: 1 }])
    }
    expect(await ask('select role from readers')).toEqual([{ role: bi }])
    expect([await ask('select * from limits'), await ask('select * from pauses')]).toEqual([[], []])
  })

  test('the role can be created as the document says', async () => {
    const { store, schema, admin, role, as } = await readerScene(url)
    await fill(store)
    const [ops, portal] = [await role('ops'), await role('portal')]
    const page = readFileSync(new URL('../../docs/postgres.md', import.meta.url), 'utf8')
    const said = /```sql\n(create role .*?)(select sluice\.revoke_reader.*?)```/s.exec(page)?.slice(1) ?? []
    const [grants = '', revoke = ''] = said.map((sql) =>
      sql.replaceAll(/sluice\.(?=grant|revoke)/g, `${schema}.`).replaceAll(/\b(?=(?:bi|ops|portal)\b)/g, `${schema}_`),
    )
    await admin.query(grants)
    const seen = async (name: string, first = 'select 1'): Promise<unknown> => {
      const ask = await as(name)
      await ask(first)
      return rowsOf(await ask(WORDS))
    }
    const bi = `${schema}_bi`
    expect(await seen(bi)).toEqual(wordsOf('t1'))
    expect(await seen(ops)).toHaveLength(15)
    expect(await seen(portal)).toEqual([])
    expect(await seen(portal, `set sluice.tenant = 't1'`)).toEqual(wordsOf('t1'))
    await admin.query(revoke)
    await expect(seen(bi)).rejects.toThrow('does not exist')
    await admin.query(`drop role ${bi}`)
  })

  test('the role sees only its own placements, also those in the table', async () => {
    const { store, admin, role, as } = await readerScene(url)
    for (const tenant of ['t1', 't2']) {
      const events = [1, 2, 3].map((n) =>
        createEventToStore('x', { id: `${tenant}-${n}`, tenant, key: tenant, quiet: 1e6 }, 0),
      )
      await store.append({ routes: 1, events })
    }
    const bi = await role('bi')
    await admin.query(`select grant_reader('${bi}', 't1')`)
    const ask = await as(bi)
    expect(await ask(`select e.id from places p join events e on e.seq = p.event order by 1`)).toHaveLength(2)
    expect(await ask(`select count(*)::int as n from places`)).toEqual([{ n: 2 }])
    expect((await admin.query('select count(*)::int as n from places')).rows).toEqual([{ n: 4 }])
  })

  test('a role without a tenant sees the tenant that its session sets, and nothing without one', async () => {
    const { store, admin, role, as } = await readerScene(url)
    await fill(store)
    const app = await role('app')
    await admin.query(`select grant_reader('${app}')`)
    const ask = await as(app)
    const seen = async (): Promise<unknown> => rowsOf(await ask(WORDS))
    expect(await seen()).toEqual([])
    await ask(`set sluice.tenant = 't2'`)
    expect(await seen()).toEqual(wordsOf('t2'))
    await ask(`set sluice.tenant = ''`)
    expect(await seen()).toEqual([])
    await ask('reset sluice.tenant')
    expect([await seen(), await ask('select id from events')]).toEqual([[], []])
  })

  test('a role for all tenants, and the owner, see every tenant', async () => {
    const { store, admin, owner, role, as } = await readerScene(url)
    await fill(store)
    const all = await role('all')
    await admin.query(`select grant_reader('${all}', every_tenant => true)`)
    const whole = [...wordsOf('nobody'), ...wordsOf('t1'), ...wordsOf('t2')]
    expect(rowsOf(await (await as(all))(WORDS))).toEqual(whole)
    expect(rowsOf(await (await as(owner))(WORDS))).toEqual(whole)
    expect(rowsOf((await admin.query(WORDS)).rows)).toEqual(whole)
    // After a second grant, the last one counts.
    await admin.query(`select grant_reader('${all}', 't1')`)
    expect(rowsOf(await (await as(all))(WORDS))).toEqual(wordsOf('t1'))
  })

  test('a lane that two tenants share belongs to the tenant that opened it, and the other sees nothing of it', async () => {
    const { store, admin, role, as } = await readerScene(url)
    const events = ['t1', 't2'].map((tenant) =>
      createEventToStore(
        tenant,
        {
          id: tenant,
          tenant,
          placements: [createPlacement({ key: 'shared', quiet: 1e6 }), createPlacement({ key: tenant })],
        },
        0,
      ),
    )
    for (const event of events) await store.append({ routes: 1, events: [event] })
    const roles = [await role('one'), await role('two')]
    for (const [n, name] of roles.entries()) await admin.query(`select grant_reader('${name}', 't${n + 1}')`)
    const keys = async (name: string): Promise<unknown> => (await as(name))('select event, key from work order by 2')
    expect(await keys(roles[0] ?? '')).toEqual([
      { event: 't1', key: 'shared' },
      { event: 't1', key: 't1' },
    ])
    expect(await keys(roles[1] ?? '')).toEqual([{ event: 't2', key: 't2' }])
  })

  test('a reader changes nothing, calls nothing, and reads no other table', async () => {
    const { store, admin, role, as } = await readerScene(url)
    await fill(store)
    const all = await role('all')
    await admin.query(`select grant_reader('${all}', every_tenant => true)`)
    const ask = await as(all)
    const { rows } = await admin.query<{ name: string; column: string }>(
      `select c.relname as name, min(a.attname) as column from pg_class c join pg_attribute a on a.attrelid = c.oid
       where a.attnum > 0 and a.attidentity = '' and c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'v')
       group by 1`,
    )
    expect(rows.length).toBeGreaterThan(20)
    for (const { name, column } of rows) {
      const isRead = name === 'work' || READ.includes(name)
      const read = ask(`select * from ${name}`)
      await (isRead ? expect(read, name).resolves.toBeDefined() : expect(read, name).rejects.toMatchObject(DENIED))
      const writes = [
        `delete from ${name}`,
        `update ${name} set ${column} = ${column}`,
        `insert into ${name} default values`,
        `truncate ${name}`,
        `select * from ${name} for update`,
        `alter table ${name} disable row level security`,
      ]
      // A view of this kind rejects writes with its own error.
      const no = name === 'work' ? {} : DENIED
      for (const sql of writes) await expect(ask(sql), sql).rejects.toMatchObject(no)
    }
    for (const sql of [
      `select publish('order.paid')`,
      `select nextval('numbers')`,
      `select grant_reader('${all}', every_tenant => true)`,
      `select revoke_reader('${all}')`,
      `select share_with('${all}')`,
      `select share_again()`,
      `create table mine (n int)`,
      `create policy mine on docs using (true)`,
      `drop policy reader on events`,
    ]) {
      await expect(ask(sql), sql).rejects.toMatchObject(DENIED)
    }
    expect((await admin.query(`select count(*)::int as n from outbox`)).rows).toEqual([{ n: 0 }])
  })

  test('notifications of a reader on the channel of the processes have no effect', async () => {
    const { schema, admin, owner, role, as, open } = await readerScene(url)
    const bi = await role('bi')
    await admin.query(`select grant_reader('${bi}', 't1')`)
    const store = await open(owner)
    let heard = 0
    const stop = store.listen((hint) => (heard += hint.kind === 'due' && hint.flow === 'last' ? 1 : 0))
    const ask = await as(bi)
    const last = JSON.stringify({ from: 'bi', hints: [{ kind: 'due', flow: 'last' }] })
    const say = async (): Promise<number> => {
      for (const said of ['', 'x', 'null', '{}', '[]', '{"hints":[null]}', '{"hints":[{"kind":1}]}', last]) {
        await ask(`select pg_notify('sluice/${schema}', '${said}')`)
      }
      return heard
    }
    // The process was listening at the first hint, and received all hints before the second.
    await expect.poll(say).toBeGreaterThan(1)
    stop()
  })

  test('a reader with temporary tables, functions of its own and mistaken grants sees no more', async () => {
    const { store, admin, schema, role, as } = await readerScene(url)
    await fill(store)
    const bi = await role('bi')
    await admin.query(`select grant_reader('${bi}', 't1')`)
    const ask = await as(bi)
    await ask(`create temp table readers (role name, tenant text, every_tenant boolean)`)
    await ask(`insert into readers values ('${bi}', null, true)`)
    await ask(`create temp table events as select 1 as seq`)
    expect(await ask(`select distinct tenant from ${schema}.events`)).toEqual([{ tenant: 't1' }])
    expect(rowsOf(await ask(WORDS))).toEqual(wordsOf('t1'))
    // The lowest cost, so that the planner would call it first.
    await ask(`create table pg_temp.told (what text)`)
    await ask(`create function pg_temp.tell(what text) returns boolean language plpgsql cost 0.0000001 as
      $$ begin insert into pg_temp.told values (what); return true; end $$`)
    await ask(`select count(*) from ${schema}.events where pg_temp.tell(tenant)`)
    await ask(`select count(*) from ${schema}.work where pg_temp.tell(tenant)`)
    expect(await ask(`select distinct what from pg_temp.told`)).toEqual([{ what: 't1' }])
    // A table that is not for readers shows nothing, even with a grant.
    await admin.query(`grant select on all tables in schema ${schema} to ${bi}`)
    for (const table of ['docs', 'audit', 'processes', 'outbox', 'meta', 'tickets', 'stored_bytes']) {
      expect([table, await ask(`select * from ${schema}.${table}`)]).toEqual([table, []])
    }
    expect(rowsOf(await ask(WORDS))).toEqual(wordsOf('t1'))
    // As in pg_dump: all rows, or an error.
    await ask('set row_security = off')
    await expect(ask(`select * from ${schema}.events`)).rejects.toMatchObject(DENIED)
  })

  test('a member of one reader role sees the same, a member of two sees both, and nobody else sees anything', async () => {
    const { store, admin, schema, role, as } = await readerScene(url)
    await fill(store)
    const [one, two, ana] = [await role('one'), await role('two'), await role('ana')]
    await admin.query(`select grant_reader('${one}', 't1'), grant_reader('${two}', 't2')`)
    const ask = await as(ana)
    await expect(ask(`select * from ${schema}.work`)).rejects.toMatchObject(DENIED)
    await admin.query(`grant ${one} to ${ana}`)
    expect(rowsOf(await ask(`select event, status from ${schema}.work order by 1`))).toEqual(wordsOf('t1'))
    await admin.query(`grant ${two} to ${ana}`)
    expect(rowsOf(await ask(`select event, status from ${schema}.work order by 1`))).toEqual([
      ...wordsOf('t1'),
      ...wordsOf('t2'),
    ])
  })

  test('a revoked role reads nothing; a role that publishes still does, and reads nothing either', async () => {
    const { admin, schema, role, as } = await readerScene(url)
    const bi = await role('bi')
    await admin.query(`grant usage on schema ${schema} to ${bi}; grant insert on outbox to ${bi}`)
    await admin.query(`select grant_reader('${bi}', 't1')`)
    const ask = await as(bi)
    await ask(`select publish('order.paid')`)
    expect(await ask('select * from work')).toEqual([])
    await admin.query(`select revoke_reader('${bi}')`)
    for (const table of ['work', 'readers', ...READ]) {
      await expect(ask(`select * from ${table}`), table).rejects.toMatchObject(DENIED)
    }
    await ask(`select publish('order.sent')`)
    await expect(ask('select * from outbox')).rejects.toMatchObject(DENIED)
    expect((await admin.query(`select type from outbox order by n`)).rows).toEqual([
      { type: 'order.paid' },
      { type: 'order.sent' },
    ])
    const other = await role('other')
    await admin.query(`select grant_reader('${other}'), revoke_reader('${other}')`)
    // Nothing is left that would keep the role from being dropped.
    await admin.query(`drop role ${other}; create role ${other}`)
    await admin.query(`grant usage on schema ${schema} to ${other}`)
    await expect((await as(other))(`select * from ${schema}.work`)).rejects.toMatchObject(DENIED)
  })

  test('a grant without an effect is rejected, with a code and a hint', async () => {
    const { admin, owner, role } = await readerScene(url)
    const [bi, high] = [await role('bi'), await role('high')]
    const grant = (args: string): Promise<unknown> => admin.query(`select grant_reader(${args})`)
    await expect(grant(`'nobody_of_that_name'`)).rejects.toMatchObject(refused('42704'))
    await expect(grant(`'${bi}', ''`)).rejects.toMatchObject(refused('22023'))
    await expect(grant(`'${bi}', 't1', true`)).rejects.toMatchObject(refused('22023'))
    await expect(grant(`'${owner}'`)).rejects.toMatchObject(refused('22023'))
    await admin.query(`grant ${owner} to ${high}`)
    await expect(grant(`'${high}', 't1'`)).rejects.toMatchObject(refused('22023'))
    await admin.query(`revoke ${owner} from ${high}; alter role ${high} bypassrls`)
    await expect(grant(`'${high}', 't1'`)).rejects.toMatchObject(refused('22023'))
    await admin.query(`alter role ${high} nobypassrls superuser`)
    await expect(grant(`'${high}', 't1'`)).rejects.toMatchObject(refused('22023'))
    expect((await admin.query('select * from readers')).rows).toEqual([])
    await admin.query(`alter role ${high} nosuperuser`)
  })
})
