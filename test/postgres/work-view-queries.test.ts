// The view `work` in a schema: the documented queries return known results, reading it does not scan everything, and opening a
// store creates the view of its release without waiting for readers.
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { monitored, sendMonitored } from '../work-flows.ts'
import { atWork, type AtWork } from './running-app.ts'

const HOUR = 3_600_000
let schemas = 0

const sql = [
  ...readFileSync(new URL('../../docs/operate/monitor.md', import.meta.url), 'utf8').matchAll(/```sql\n(.*?)```/gs),
].map(([, text]) => text ?? '')
/** The settings with which the document says to read it. */
const [, failures = '', depth = '', deadLetters = '', latency = ''] = sql.map((text) =>
  text
    .replaceAll(/datetime\('now', '-(\d+ \w+)'\)/g, (_, age: string) => `NOW() - INTERVAL '${age}'`)
    .replace('sluice.work', 'work'),
)

async function known(url: string, now: number): Promise<AtWork> {
  const t = await atWork({ url, now, declare: monitored })
  await sendMonitored(t)
  return t
}

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  async function client(schema: string): Promise<pg.Client> {
    const one = new pg.Client({ connectionString: url })
    await one.connect()
    onTestFinished(() => one.end())
    await one.query(`set search_path = ${schema}`)
    return one
  }

  async function fresh(): Promise<{
    readonly schema: string
    readonly db: pg.Client
    readonly open: () => Promise<void>
  }> {
    const schema = `kept_${process.pid}_${schemas++}`
    const open = async (): Promise<void> =>
      (await openPostgresStore({ url, schema, connections: 1, acceptLoss: true })).close()
    await open()
    return { schema, db: await client(schema), open }
  }

  describe('the queries of docs/operate/monitor.md', () => {
    it('latency, failure rate, queue depth and dead letters', async () => {
      const now = Date.now() - HOUR
      const { ask } = await known(url, now)
      const [timed, ...others] = await ask(latency)
      expect(others).toEqual([])
      expect({ ...timed, avg_latency_seconds: Number(timed?.['avg_latency_seconds']) }).toEqual({
        source: 'garmin',
        event_type: 'timed',
        avg_latency_seconds: 10.5,
        p95_latency_seconds: expect.closeTo(19.05, 6),
      })
      const rates = (await ask(`${failures.trim().slice(0, -1)} order by 2`)).map((row) =>
        Object.values(row).map(String),
      )
      expect(rates).toEqual([
        ['garmin', 'dead', '2', '2', '100.00'],
        ['garmin', 'failing', '1', '1', '100.00'],
        ['garmin', 'timed', '0', '20', '0.00'],
        ['garmin', 'waits', '0', '3', '0.00'],
      ])
      const oldest = new Date(now)
      expect((await ask(depth)).toSorted((a, b) => Number(a['count']) - Number(b['count']))).toEqual([
        { status: 'failed', count: '1', oldest_event: oldest },
        { status: 'pending', count: '3', oldest_event: oldest },
      ])
      expect(await ask(deadLetters)).toMatchObject([{ source: 'garmin', event_type: 'dead', dead_letter_count: '2' }])
    })

    it('events from more than a day ago are not counted', async () => {
      const { ask } = await known(url, Date.now() - 25 * HOUR)
      expect([await ask(latency), await ask(failures)]).toEqual([[], []])
      expect(await ask(deadLetters)).toHaveLength(1)
    })
  })

  it('100,000 events are counted, with deep queues; a single event is found by an index', async () => {
    const { db } = await fresh()
    // 60,000 done events, each in its own lane; 20,000 dead ones, one by one in the same lane; 20,000 waiting in one lane.
    await db.query(`
      insert into events (seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes, size, request, body)
        select n, 'e' || n, 'i' || n, 0, 'shop', 't', 0, '', '', '', extract(epoch from now()) * 1000,
          array[case when n <= 60000 then 'l' || n when n <= 80000 then 'hot' else 'deep' end], 500, '', decode(repeat('ab', 500), 'hex')
        from generate_series(1, 100000) n;
      insert into runs select 200000 + n, '', case when n <= 60000 then 'l' || n else 'hot' end, 'f', 'k', '',
          case when n <= 60000 then 'done' else 'dead' end, '', 0, 1, 0, 0, array[n], null from generate_series(1, 80000) n;
      insert into letters select 'x' || n, 300000 + n, 'hot', 'f', 'k', '', '', '', 'dead', 'no', 1, 1, 0, false, array[n, n, 500], '[]', ''
        from generate_series(60001, 80000) n;
      insert into lanes (id, row, flow, key, tenant, grp, tail, waiting, bytes, ticket, line, ring_ticket, rest)
        values ('deep', 1, 'f', 'k', '', '', 20000, 19000, 0, 1, 0, 1,
          '{"run":{"state":"running","rank":0,"upto":1000,"isDeadLetter":false,"tries":0,"until":1}}');
      insert into places select 1, 0, n, 80000 + n, 500, 0 from generate_series(1, 20000) n`)
    const counts = `select status, count(*)::int as n from work where received_at > now() - interval '24 hours' group by status order by 1`
    const lookup = `select status from work where event = 'e500'`
    for (const state of ['as it is', 'analyzed']) {
      if (state === 'analyzed') await db.query('analyze')
      expect((await db.query(counts)).rows.map(Object.values)).toEqual([
        ['completed', 60_000],
        ['dead_letter', 20_000],
        ['pending', 19_000],
        ['running', 1_000],
      ])
      expect((await db.query(lookup)).rows).toEqual([{ status: 'completed' }])
      const plan = (await db.query<{ readonly 'QUERY PLAN': string }>(`explain ${lookup}`)).rows
      const steps = plan.map((row) => row['QUERY PLAN']).join('\n')
      expect(steps).toMatch(/Index Scan using events_id on events/)
      expect(steps).not.toMatch(/Seq Scan on (?:events|runs)/)
    }
  })

  describe('schemas of other releases', () => {
    const MARKED = `select oid, xmin, obj_description(oid) as mark, pg_get_viewdef(oid) as text from pg_class where oid = 'work'::regclass`

    it.each([
      ['without the view', 'drop view work'],
      ['with another one', 'drop view work; create view work as select 1 as one'],
      ['with the same under another text', `comment on view work is 'of another release'`],
    ])('a schema %s has it once it was opened', async (_name, before) => {
      const { db, open } = await fresh()
      const made = (await db.query(MARKED)).rows[0]
      await db.query(before)
      await open()
      const { text, mark } = (await db.query(MARKED)).rows[0]
      expect([text, mark]).toEqual([made.text, made.mark])
    })

    it('one that has the view is not written to', async () => {
      const { db, open } = await fresh()
      const before = (await db.query(MARKED)).rows
      await open()
      expect((await db.query(MARKED)).rows).toEqual(before)
    })

    it('of ten processes that start at once, one creates the view', async () => {
      const { db, open } = await fresh()
      await db.query(`comment on view work is 'of another release'`)
      await Promise.all(Array.from({ length: 10 }, open))
      const [made] = (await db.query(MARKED)).rows
      await open()
      expect((await db.query(MARKED)).rows).toEqual([made])
      expect(made.mark).not.toBe('of another release')
    })

    it('objects that depend on the view stay, and so do its grants', async () => {
      const { db, open } = await fresh()
      await db.query(`create view ours as select status, count(*) from work group by status; grant select on work to public;
        comment on view work is 'of another release'`)
      await open()
      expect((await db.query('select * from ours')).rows).toEqual([])
      expect((await db.query(`select has_table_privilege('public', 'work', 'select') as may`)).rows).toEqual([
        { may: true },
      ])
    })

    it('a session that reads the view does not delay a start; the view is created when it is done', async () => {
      const { db, schema, open } = await fresh()
      const reader = await client(schema)
      await db.query(`comment on view work is 'of another release'`)
      await reader.query('begin')
      await reader.query('select count(*) from work')
      const mark = async (): Promise<unknown> => (await db.query(MARKED)).rows[0].mark
      await open()
      expect(await mark()).toBe('of another release')
      await reader.query('commit')
      await open()
      expect(await mark()).not.toBe('of another release')
    })
  })
})
