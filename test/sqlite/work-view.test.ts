// The view `work`, read beside the working process: each row matches the store, and the queries of the
// document give known results on known data.
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { createClaimRequest, done } from '../conformance/builders.ts'
import { openStore } from '../../src/store/open.ts'
import { testApp, type TestApp } from '../../src/testing/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { everyWord, fails, monitored, rejectedRequest, sendMonitored, typingAndParts } from '../work-flows.ts'
import { connect, event as stored, freshFile, open, send } from './scratch.ts'

const HOUR = 3_600_000
const START = Date.UTC(2026, 0, 10, 12)
const END = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const

interface Scene {
  readonly t: TestApp
  readonly file: string
  /** The view as another program sees it in the file. */
  readonly ask: (sql: string) => readonly Record<string, unknown>[]
}

async function scene(declare: (app: Sluice) => unknown, now = START): Promise<Scene> {
  const file = freshFile()
  const app = new Sluice({ store: 'memory:', log: false })
  declare(app)
  const t = await testApp(app, { store: `sqlite:${file}`, now })
  onTestFinished(() => t.stop())
  const ask = (sql: string): readonly Record<string, unknown>[] => {
    const db = new DatabaseSync(file, { readOnly: true })
    try {
      return db
        .prepare(sql)
        .all()
        .map((row) => ({ ...row }))
    } finally {
      db.close()
    }
  }
  return { t, file, ask }
}

describe('the view work', () => {
  it('has a row for each event and flow, with its state', async () => {
    const running = Promise.withResolvers<void>()
    const { t, ask } = await scene((app) => everyWord(app, running.promise))
    await t.send({ type: 'last', id: 'first-of-two' })
    for (const type of ['done', 'waits', 'failing', 'dead', 'dropped', 'last', 'keyless', 'runs', 'nobody']) {
      await t.send({ type, id: `an-${type}`, source: 'shop', tenant: 'acme' })
    }
    expect((await t.app.fetch(rejectedRequest())).status).toBe(202)
    await t.advance('2s')
    await t.send({ type: 'failing', id: 'behind' })
    const rows = ask('select event, flow, status, attempts, last_error from work order by event, flow')
    expect(rows.map((row) => Object.values(row))).toEqual([
      [expect.any(String), 'checked', 'unrouted', 0, expect.stringContaining('web/checked: data.user: ')],
      ['an-dead', 'dead', 'dead_letter', 1, 'Error: no answer'],
      ['an-done', 'also', 'completed', 1, null],
      ['an-done', 'done', 'completed', 1, null],
      ['an-dropped', 'dropped', 'dropped', 0, 'not for us'],
      ['an-failing', 'failing', 'failed', 1, 'Error: no answer'],
      ['an-keyless', 'keyless', 'unrouted', 0, expect.stringContaining('JSON')],
      ['an-last', 'last', 'completed', 1, null],
      ['an-runs', 'runs', 'running', 1, null],
      ['an-waits', 'waits', 'pending', 0, null],
      ['behind', 'failing', 'pending', 0, null],
      ['first-of-two', 'last', 'superseded', 0, null],
    ])
    running.resolve()
    await t.settled()
    expect(ask(`select status from work where event = 'an-runs'`)).toEqual([{ status: 'completed' }])
  })

  it('names the event, and the times of its arrival, its end and its next attempt', async () => {
    const { t, ask } = await scene((app) =>
      app
        .flow('slow', { on: 'slow', key: () => 'a, "key"', window: { quiet: '90s' }, run: () => {} })
        .flow('failing', { on: 'failing', key: () => 'k', retry: { delays: ['5h'], jitter: 0 }, run: fails }),
    )
    await t.send({ type: 'slow', id: 'one', source: 'shop', tenant: 'acme', subject: 'ada' })
    await t.advance('90s')
    await t.send({ type: 'failing', id: 'two' })
    expect(ask(`select * from work where event = 'one'`)).toEqual([
      {
        event: 'one',
        source: 'shop',
        event_type: 'slow',
        flow: 'slow',
        key: 'a, "key"',
        tenant: 'acme',
        status: 'completed',
        received_at: '2026-01-10 12:00:00.000',
        processed_at: '2026-01-10 12:01:30.000',
        latency_seconds: 90,
        attempts: 1,
        last_error: null,
        next_retry_at: null,
        lane: expect.any(String),
        subject: 'ada',
        payload_row: expect.anything(),
      },
    ])
    expect(ask(`select processed_at, next_retry_at from work where event = 'two'`)).toEqual([
      { processed_at: null, next_retry_at: '2026-01-10 17:01:30.000' },
    ])
  })

  it('follows a dead letter that is retried, and one that is dropped', async () => {
    let broken = true
    const { t, ask } = await scene((app) =>
      app.flow('dead', { on: 'x', key: (event) => event.id, retry: [], run: () => (broken ? fails() : undefined) }),
    )
    await t.send([
      { type: 'x', id: 'one' },
      { type: 'x', id: 'two' },
    ])
    const statuses = (): unknown => ask('select event, status from work order by event').map((row) => row['status'])
    expect(statuses()).toEqual(['dead_letter', 'dead_letter'])
    broken = false
    const { items } = await t.app.admin.deadLetters.list({ flow: 'dead' })
    const [one, two] = items.toSorted((a, b) => (a.events[0] ?? '').localeCompare(b.events[0] ?? ''))
    await t.app.admin.flows.pause('dead', { reason: 'test', by: 'test' })
    await t.app.admin.deadLetters.retry(one?.id ?? '')
    await t.app.admin.deadLetters.drop(two?.id ?? '')
    expect(statuses()).toEqual(['pending', 'dropped'])
    await t.app.admin.flows.resume('dead', 'test')
    await t.settled()
    expect(statuses()).toEqual(['completed', 'dropped'])
    // A manual retry starts with zero attempts.
    expect(ask(`select attempts, last_error from work where event = 'one'`)).toEqual([
      { attempts: 1, last_error: null },
    ])
  })

  it('includes what the rows of lanes do not have yet: new placements, and runs that have just begun', async () => {
    const file = freshFile()
    const store = await open(file, { clock: new VirtualClock(START) })
    const db = connect(file)
    const statuses = (): unknown =>
      db
        .prepare('select status, count(*) as n from work group by status')
        .all()
        .map((row) => Object.values(row))
    for (let n = 0; n < 5; n++) await send(store, stored(`typed${n}`, { key: 'k', quiet: 10_000, max: 100_000 }))
    expect(db.prepare('select max(waiting) as n from lanes').get()).toEqual({ n: 1 })
    expect(statuses()).toEqual([['pending', 5]])
    await send(store, stored('now', { quiet: 0, max: 0 }))
    const claim = [createClaimRequest({ maxRuns: 10 })]
    const call = { process: 'p', routes: 1, budget: 1_000_000 }
    const { claimed } = await store.settleAndClaim({ ...call, request: 1, settle: [], claim })
    expect(claimed.map(({ key }) => key)).toEqual(['now'])
    expect(db.prepare('select count(*) as n from lanes where lease is not null').get()).toEqual({ n: 0 })
    expect(statuses()).toEqual([
      ['pending', 5],
      ['running', 1],
    ])
    const settle = claimed.map(({ lane, token }) => ({ ...END, lane, token }))
    await store.settleAndClaim({ ...call, request: 2, settle, claim: [] })
    expect(statuses()).toEqual([
      ['completed', 1],
      ['pending', 5],
    ])
  })

  it('separates the events of a run that has just begun from those behind it, run after run', async () => {
    const file = freshFile()
    const store = await open(file, { clock: new VirtualClock(START) })
    const db = connect(file)
    const rows = (): unknown =>
      db
        .prepare('select event, status, attempts from work order by event')
        .all()
        .map((row) => Object.values(row))
    // More than the lane's own row can hold.
    const ids = Array.from({ length: 40 }, (_, n) => `e${n + 10}`)
    for (const id of ids) await send(store, stored(id, { id, key: 'k', quiet: 0, max: 0 }))
    const call = {
      process: 'p',
      routes: 1,
      budget: 1_000_000,
      claim: [createClaimRequest({ maxRuns: 10, maxEvents: 2 })],
    }
    let { claimed } = await store.settleAndClaim({ ...call, request: 1, settle: [] })
    for (let turn = 1; turn < 20; turn++) {
      expect(db.prepare('select count(*) as n from lanes where rest is not null').get()).toEqual({ n: 0 })
      const [ended, runs] = [2 * (turn - 1), 2 * turn]
      const statusOf = (at: number): string => (at < ended ? 'completed' : at < runs ? 'running' : 'pending')
      expect(rows()).toEqual(ids.map((id, at) => [id, statusOf(at), at < runs ? 1 : 0]))
      const settle = claimed.map(({ lane, token }) => ({ ...END, lane, token }))
      claimed = (await store.settleAndClaim({ ...call, request: turn + 1, settle })).claimed
    }
  })

  it('separates the events of a run from those behind it, however many wait', async () => {
    const { t, ask } = await scene((app) =>
      app.flow('big', {
        on: 'x',
        key: () => 'k',
        window: { quiet: '1s', maxEvents: 70 },
        retry: ['5h'],
        run: fails,
      }),
    )
    await t.send(Array.from({ length: 150 }, (_, n) => ({ type: 'x', id: `e${n}` })))
    await t.advance('1s')
    expect(ask('select status, count(*) as n from work group by status')).toEqual([
      { status: 'failed', n: 70 },
      { status: 'pending', n: 80 },
    ])
  })

  it('shows events of a cancelled run as waiting again, and the rest of a partial run as continuing', async () => {
    const { t, ask } = await scene(typingAndParts)
    const rows = (type: string): unknown =>
      ask(`select event, status, attempts from work where event_type = '${type}' order by event`).map(Object.values)
    await t.send({ type: 'typed', id: 'one' })
    await t.advance('1s')
    expect(rows('typed')).toEqual([['one', 'running', 1]])
    await t.send({ type: 'typed', id: 'two' })
    expect(rows('typed')).toEqual([
      ['one', 'pending', 0],
      ['two', 'pending', 0],
    ])
    await t.advance('1s')
    expect(rows('typed')).toEqual([
      ['one', 'completed', 1],
      ['two', 'completed', 1],
    ])
    await t.send([
      { type: 'part', id: 'good' },
      { type: 'part', id: 'late' },
    ])
    await t.advance('1s')
    expect(rows('part')).toEqual([
      ['good', 'completed', 1],
      ['late', 'failed', 1],
    ])
    // The accepted event did not fail, although another one of its run did.
    const errors = ask(`select last_error from work where event_type = 'part' order by event`)
    expect(errors.map((row) => row['last_error'])).toEqual([null, expect.stringContaining('not now')])
    await t.advance('1h')
    expect(rows('part')).toEqual([
      ['good', 'completed', 1],
      ['late', 'completed', 2],
    ])
  })

  it('does not assign events of an earlier run to the current run of the lane, even if a list in the file still names them', async () => {
    const file = freshFile()
    const clock = new VirtualClock()
    const store = await open(file, { clock })
    // More than the lane's own row has.
    for (let n = 0; n < 40; n++) await send(store, stored(`e${n}`, { key: 'k' }))
    const claim = [createClaimRequest({ maxRuns: 1, maxEvents: 1 })]
    const turn = { process: 'p', routes: 1, settle: [], claim, budget: 1_000 }
    const { claimed } = await store.settleAndClaim({ ...turn, request: 1 })
    const settle = claimed.map(({ lane, token }) => ({ lane, token, ...END }))
    await store.settleAndClaim({ ...turn, request: 2, settle, claim: [] })
    clock.advance(1_000)
    const kept = { deadLetters: Infinity, bytes: Infinity, lanesPerTenant: {} }
    for (let n = 0; n < 2; n++)
      await store.maintain({ policy: { events: { '': 0 }, runs: { '': 0 }, ...kept }, budget: 0 })
    await store.settleAndClaim({ ...turn, request: 3 })
    const rows = connect(file)
      .prepare(`select event, status, attempts from work where event in ('e0', 'e1', 'e2') order by event`)
      .all()
    expect(rows.map(Object.values)).toEqual([
      ['e0', 'purged', 0],
      ['e1', 'running', 1],
      ['e2', 'pending', 0],
    ])
  })

  it('shows of a purged event only that it existed', async () => {
    const { t, ask } = await scene((app) =>
      app.flow('waits', { on: 'x', key: () => 'k', window: { quiet: '1h' }, run: () => {} }),
    )
    await t.send([
      { type: 'x', id: 'one' },
      { type: 'x', id: 'two' },
    ])
    await t.app.admin.purge({ event: 'one' })
    expect(ask('select event, status from work order by event')).toEqual([
      { event: 'one', status: 'purged' },
      { event: 'two', status: 'pending' },
    ])
  })
})

async function known(now: number): Promise<Scene> {
  const made = await scene(monitored, now)
  await sendMonitored(made.t)
  return made
}

describe('the queries of docs/operate/monitor.md', () => {
  const [latency = '', failures = '', depth = '', deadLetters = ''] = [
    ...readFileSync(new URL('../../docs/operate/monitor.md', import.meta.url), 'utf8').matchAll(/```sql\n(.*?)```/gs),
  ].map(([, sql]) => sql ?? '')

  it('latency: the mean, and the 95th percentile as PERCENTILE_CONT computes it', async () => {
    const { ask } = await known(Date.now() - HOUR)
    expect(ask(latency)).toEqual([
      {
        source: 'garmin',
        event_type: 'timed',
        avg_latency_seconds: 10.5,
        p95_latency_seconds: expect.closeTo(19.05, 6),
      },
    ])
  })

  it('failure rate, queue depth and dead letters', async () => {
    const now = Date.now() - HOUR
    const { ask } = await known(now)
    expect(ask(failures)).toEqual([
      { source: 'garmin', event_type: 'dead', failed_count: 2, total_count: 2, failure_rate_pct: 100 },
      { source: 'garmin', event_type: 'failing', failed_count: 1, total_count: 1, failure_rate_pct: 100 },
      { source: 'garmin', event_type: 'timed', failed_count: 0, total_count: 20, failure_rate_pct: 0 },
      { source: 'garmin', event_type: 'waits', failed_count: 0, total_count: 3, failure_rate_pct: 0 },
    ])
    const oldest = new Date(now).toISOString().replace('T', ' ').replace('Z', '')
    expect(ask(depth)).toEqual([
      { status: 'failed', count: 1, oldest_event: oldest },
      { status: 'pending', count: 3, oldest_event: oldest },
    ])
    const date = new Date(now).toISOString().slice(0, 10)
    expect(ask(deadLetters)).toEqual([{ date, source: 'garmin', event_type: 'dead', dead_letter_count: 2 }])
  })

  it('events from more than a day ago are not counted', async () => {
    const { ask } = await known(Date.now() - 25 * HOUR)
    expect([ask(latency), ask(failures)]).toEqual([[], []])
    expect(ask(deadLetters)).toHaveLength(1)
  })
})

const viewOf = (file: string): unknown =>
  connect(file).prepare(`select sql from sqlite_schema where name = 'work'`).get()?.['sql']

describe('files of other releases', () => {
  it.each([
    ['without the view', 'drop view work'],
    ['with another one', 'drop view work; create view work as select 1 as one'],
  ])('a file %s has it once it was opened', async (_name, before) => {
    const file = freshFile()
    await (await openStore(`sqlite:${file}`)).close()
    const made = viewOf(file)
    connect(file).exec(before)
    await (await openStore(`sqlite:${file}`)).close()
    expect(viewOf(file)).toBe(made)
  })

  it('a file with the view is not written to', async () => {
    const file = freshFile()
    await (await openStore(`sqlite:${file}`)).close()
    const version = (): unknown => connect(file).prepare('pragma schema_version').get()?.['schema_version']
    const before = version()
    await (await openStore(`sqlite:${file}`)).close()
    expect(version()).toBe(before)
  })
})
