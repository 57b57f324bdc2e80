// D7 and L17: an event that another program publishes in its own transaction is published if and only if that transaction
// commits, in its order. No process waits for the transaction, however long it stays open.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { defineEvent, Sluice } from '../../src/index.ts'
import type { LeasedUnroutedEvent, Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { randomFrom } from '../../bench/workload.ts'
import { atWork } from './running-app.ts'
import { outboxWriters } from './outbox-writers.ts'

let made = 0

const billed = defineEvent('bill.sent', z.object({ total: z.number() }))

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  async function client(schema = ''): Promise<pg.Client> {
    const one = new pg.Client({ connectionString: url })
    await one.connect()
    ends.push(() => one.end())
    if (schema !== '') await one.query(`set search_path = public`)
    return one
  }

  interface Stage {
    readonly schema: string
    readonly app: Sluice
    readonly store: Store
    /** The events that ran, by key. */
    readonly ran: string[]
    readonly until: (n: number) => Promise<void>
  }

  /** An app that records its runs, one event at a time. */
  async function stage(): Promise<Stage> {
    const schema = `outbox_${process.pid}_${made++}`
    const store = await openPostgresStore({ url, schema, acceptLoss: true })
    const app = new Sluice({ store, log: false })
    const ran: string[] = []
    const waiting = new Set<() => void>()
    app.flow('note', {
      on: 'order.*',
      key: (event) => event.subject || 'all',
      window: { quiet: 20 },
      run: (run) => {
        for (const event of run.events)
          ran.push(`${run.key} ${event.type} ${String((event.data as { n?: number } | null)?.n ?? '')}`)
        for (const look of waiting) look()
      },
    })
    app.flow('asked', {
      on: () => false,
      run: (run) => void ran.push(...run.events.map((event) => `asked ${event.type}`)),
    })
    app.flow('billed', {
      on: billed,
      run: ({ events }) => void ran.push(...events.map(({ data }) => `bill ${data.total}`)),
    })
    await app.start()
    ends.push(async () => {
      await app.stop()
      await store.close()
    })
    const until = (n: number): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (ran.length < n) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    return { schema, app, store, ran, until }
  }

  /** A store without an app, so that the test sees what each call takes and returns. */
  async function bare(): Promise<{ readonly schema: string; readonly store: Store; readonly tx: pg.Client }> {
    const schema = `outbox_${process.pid}_${made++}`
    const store = await openPostgresStore({ url, schema, acceptLoss: true })
    ends.push(() => store.close())
    return { schema, store, tx: await client() }
  }

  test('D7 an event is published by the commit, in the order of the transaction, and vanishes with a rollback', async () => {
    const { schema, ran, until, store } = await stage()
    const [one, other] = [await client(), await client()]
    await one.query('begin')
    await other.query('begin')
    for (let n = 0; n < 20; n++) {
      await one.query(`select ${schema}.publish('order.paid', $1)`, [JSON.stringify({ n })])
      await other.query(`select ${schema}.publish('order.lost', $1)`, [JSON.stringify({ n })])
    }
    await other.query('rollback')
    expect((await store.claimUnrouted({ n: 100, lease: 1, reasons: ['outbox'], flows: [] })).unrouted).toEqual([])
    await one.query('commit')
    await until(20)
    expect(ran).toEqual(Array.from({ length: 20 }, (_, n) => `all order.paid ${n}`))
  })

  test('D7 an open transaction blocks neither its own key nor others', async () => {
    const { schema, app, ran, until } = await stage()
    const open = await client()
    await open.query('begin')
    await open.query(`select ${schema}.publish('order.paid', '{"n": 1}', subject => 'ada', dedupe_id => 'same')`)
    await app.publish({ type: 'order.paid', subject: 'ada', data: { n: 2 } })
    await app.publish({ type: 'order.paid', subject: 'bob', data: { n: 3 }, dedupeId: 'same' })
    await until(2)
    expect(ran.toSorted()).toEqual(['ada order.paid 2', 'bob order.paid 3'])
    await open.query('commit')
    // The same identity was published meanwhile, so this event is a duplicate, whichever transaction began first.
    const { rows } = await open.query(`select count(*)::int as n from ${schema}.outbox`)
    expect(rows).toEqual([{ n: 1 }])
    await app.publish({ type: 'order.paid', subject: 'eve', data: { n: 4 } })
    await until(3)
    expect(ran.filter((line) => line.startsWith('ada'))).toEqual(['ada order.paid 2'])
  })

  test('D7 app.publish with tx is part of the transaction', async () => {
    const { app, ran, until, store } = await stage()
    const tx = await client()
    await tx.query('begin')
    const events = [1, 2, 3].map((n) => ({ type: 'order.paid', data: { n } }))
    const [first] = await app.publish(events, { tx })
    expect(first).toMatchObject({ kind: 'in-transaction', of: undefined })
    expect((await store.get({ kind: 'events', id: first?.id ?? '' })).item).toBeUndefined()
    await tx.query('commit')
    await until(3)
    expect(ran).toEqual(['all order.paid 1', 'all order.paid 2', 'all order.paid 3'])
    expect((await store.get({ kind: 'events', id: first?.id ?? '' })).item?.type).toBe('order.paid')
    await tx.query('begin')
    await app.publish({ type: 'order.paid', data: { n: 4 } }, { tx })
    await tx.query('rollback')
    await app.publish({ type: 'order.paid', data: { n: 5 } })
    await until(4)
    expect(ran.at(-1)).toBe('all order.paid 5')
  })

  test('L2a data that its schema rejects: app.publish with tx throws, and an event that SQL published becomes unrouted', async () => {
    const { app, schema, ran } = await stage()
    const tx = await client()
    await tx.query('begin')
    const invalid = { type: 'bill.sent', data: { total: 'much' } }
    const error = expect.stringMatching(/bill\.sent: data\.total: .*expected number, received string/)
    await expect(app.publish([billed({ total: 1 }), invalid], { tx })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: error,
    })
    expect((await tx.query(`select 1 from ${schema}.outbox`)).rows).toEqual([])
    const done = app.once('run.done')
    await tx.query(`select ${schema}.publish('bill.sent', $1)`, [JSON.stringify(invalid.data)])
    await app.publish(billed({ total: 2 }), { tx })
    await tx.query('commit')
    await done
    expect(ran).toEqual(['bill 2'])
    const list = async (): Promise<readonly unknown[]> => (await app.admin.deadLetters.list({ kind: 'unrouted' })).items
    await expect.poll(list).toMatchObject([{ flow: 'billed', reason: 'schema-failed', error }])
  })

  test('D7 app.publish with tx accepts as many events as without, and the transaction continues', async () => {
    const { app, schema } = await stage()
    const tx = await client()
    await tx.query('begin')
    const events = Array.from({ length: 12_000 }, (_, n) => ({ type: 'many', id: `many-${n}` }))
    expect(await app.publish(events, { tx })).toHaveLength(12_000)
    const ids = `select array_agg(id order by n) as ids from ${schema}.outbox`
    const { rows } = await tx.query<{ ids: string[] }>(ids)
    expect(rows[0]?.ids).toEqual(events.map(({ id }) => id))
    await tx.query('rollback')
  })

  test('D7 control characters are stored unchanged, by SQL and by app.publish', async () => {
    const { app, schema, store, ran, until } = await stage()
    const tx = await client()
    const [zero, one] = ['a\0b', 'a\u00010b\u00011']
    for (const subject of [zero, one]) {
      await app.publish({ type: 'order.paid', id: `by app ${subject}`, subject, tenant: subject }, { tx })
    }
    await tx.query(`select ${schema}.publish('order.paid', id => $1, subject => $2, tenant => $2)`, [
      `by SQL ${one}`,
      one,
    ])
    // The longest id keeps every character through escaping.
    await app.publish({ type: 'order.paid', id: '\0'.repeat(128) }, { tx })
    await until(4)
    expect(ran.toSorted()).toEqual([
      `${zero} order.paid `,
      `${one} order.paid `,
      `${one} order.paid `,
      'all order.paid ',
    ])
    for (const id of [`by app ${zero}`, `by app ${one}`, `by SQL ${one}`]) {
      const subject = id.slice('by app '.length)
      expect((await store.get({ kind: 'events', id })).item).toMatchObject({ id, subject, tenant: subject })
    }
  })

  test('D7 L10 a known event does not run twice, by whichever way it comes', async () => {
    const { schema, app, ran, until } = await stage()
    const tx = await client()
    for (let n = 0; n < 3; n++) await tx.query(`select ${schema}.publish('order.paid', '{"n": 1}', dedupe_id => 'x')`)
    await until(1)
    expect(await app.publish({ type: 'order.paid', data: { n: 1 }, dedupeId: 'x' })).toMatchObject([
      { kind: 'conflict' },
    ])
    await app.publish({ type: 'order.paid', data: { n: 2 } })
    await until(2)
    expect(ran).toEqual(['all order.paid 1', 'all order.paid 2'])
  })

  test('D7 L10 duplicates and conflicts are emitted, even if their publisher is gone', async () => {
    const { schema, app } = await stage()
    const told: string[] = []
    const both = new Promise<void>((resolve) => {
      const tell = (kind: string, of: string): void => void (told.push(`${kind} of ${of}`) === 2 && resolve())
      app.on('event.duplicate', ({ of }) => tell('duplicate', of))
      app.on('event.conflict', ({ of }) => tell('conflict', of))
    })
    const tx = await client()
    await tx.query(`select ${schema}.publish('order.paid', '1', id => 'first', dedupe_id => 'x'),
      ${schema}.publish('order.paid', '1', dedupe_id => 'x'), ${schema}.publish('order.paid', '2', dedupe_id => 'x')`)
    await both
    expect(told.toSorted()).toEqual(['conflict of first', 'duplicate of first'])
  })

  test('D7 events at the bounds are stored, up to the longest text and the latest time', async () => {
    const { schema, ran, until } = await stage()
    const tx = await client()
    await tx.query(`select ${schema}.publish('order.paid', id => repeat('😀', 128), dedupe_for => '100000000 years')`)
    await tx.query(`select ${schema}.publish('order.kept', "time" => '275760-09-13 00:00:00+00')`)
    await until(2)
    expect(ran.toSorted()).toEqual(['all order.kept ', 'all order.paid '])
  })

  test('D7 a large commit is processed in steps of a few megabytes', async () => {
    const { schema, store, tx } = await bare()
    for (const megabytes of [9, 3, 3, 3, 3, 3])
      await tx.query(`select ${schema}.publish('x', body => convert_to(repeat('z', $1), 'UTF8'))`, [
        megabytes * 2 ** 20,
      ])
    // The lease ends at once, so each call could return everything that was taken in before it.
    const call = { n: 100, lease: 0, reasons: ['outbox'], flows: [] } as const
    const calls: string[] = []
    for (let n = 0; n < 4; n++) {
      const { takenFromOutbox: taken, unrouted } = await store.claimUnrouted(call)
      calls.push(`took ${taken.length}, gave ${unrouted.length}`)
    }
    expect(calls).toEqual(['took 1, gave 0', 'took 3, gave 1', 'took 2, gave 1', 'took 0, gave 3'])
  })

  const ONE_CALL = { n: 500, lease: 60_000, reasons: ['outbox'], flows: [] } as const

  test('D7 transactions take turns: a small one does not wait for the end of a large one', async () => {
    const { schema, store, tx } = await bare()
    await tx.query(`select ${schema}.publish('bulk') from generate_series(1, 2000)`)
    await tx.query(`select ${schema}.publish('small') from generate_series(1, 2)`)
    const { takenFromOutbox: taken } = await store.claimUnrouted(ONE_CALL)
    expect([taken.length, taken.filter(({ type }) => type === 'small').length]).toEqual([500, 2])
  })

  test('D7 L17 a large transaction is placed in order, and no more of it is read than can be placed soon', async () => {
    const { schema, store, tx } = await bare()
    await tx.query(`select ${schema}.publish('bulk', subject => n::text) from generate_series(0, 1999) n`)
    const given: string[] = []
    const call = async (): Promise<LeasedUnroutedEvent[]> => {
      const { takenFromOutbox: taken, unrouted } = await store.claimUnrouted(ONE_CALL)
      const [first, last] = [unrouted[0], unrouted.at(-1)].map((leased) => leased?.event.subject)
      given.push(`took ${taken.length}, gave ${unrouted.length === 0 ? 'none' : `${first} to ${last}`}`)
      return [...unrouted]
    }
    await call()
    const unrouted = await call()
    await call()
    await call()
    // While the first events are being placed, no later ones are returned, and none are taken in that would have to wait.
    expect(given).toEqual(['took 500, gave none', 'took 500, gave 0 to 499', 'took 0, gave none', 'took 0, gave none'])
    const items = unrouted.map(
      ({ id, token }) => ({ kind: 'unrouted', id, token, placements: [], unrouted: [] }) as const,
    )
    const { results } = await store.place({ routes: 1_000, items })
    expect(new Set(results)).toEqual(new Set(['placed']))
    await call()
    expect(given.at(-1)).toBe('took 500, gave 500 to 999')
  })

  test('D7 a committed event that cannot be stored is not lost: it is reported, and waits in the outbox for a fix', async () => {
    const { schema, app, ran, until } = await stage()
    const told = new Promise((resolve) => void app.on('event.refused', resolve))
    const tx = await client()
    await tx.query(`alter table ${schema}.outbox drop constraint if exists outbox_fits`)
    await tx.query('begin')
    await tx.query(`select ${schema}.publish('order.odd', '{"n": 1}', id => 'odd')`)
    await tx.query(`update ${schema}.outbox set time = 8640000000000001 where id = 'odd'`)
    await tx.query('commit')
    await tx.query(`select ${schema}.publish('order.next', '{"n": 2}')`)
    expect(await told).toMatchObject({ event: 'odd', type: 'order.odd', field: 'time' })
    await until(1)
    expect(ran).toEqual(['all order.next 2'])
    const { rows } = await tx.query(`select id, refused from ${schema}.outbox`)
    expect(rows).toEqual([{ id: 'odd', refused: expect.stringContaining('time: ') }])
    await tx.query(`update ${schema}.outbox set time = 0, refused = null where id = 'odd'`)
    await until(2)
    expect(ran.at(-1)).toBe('all order.odd 1')
  })

  test('D7 to: only the named flows get the event', async () => {
    const { schema, app, ran, until } = await stage()
    const tx = await client()
    await tx.query(`select ${schema}.publish('order.paid', to_flows => array['asked'])`)
    await app.publish({ type: 'order.sent' }, { tx, to: 'asked' })
    await app.publish({ type: 'order.seen' })
    await until(1)
    await expect.poll(() => ran.toSorted()).toEqual(['all order.seen ', 'asked order.paid', 'asked order.sent'])
  })

  test('D7 L19 an event for an unknown flow is kept, reported, and placed once a process serves the flow', async () => {
    const NOW = Date.UTC(2026, 0, 1)
    const at = await atWork({ url, now: NOW, declare: (app) => app.flow('f', { on: 'f', run: () => {} }) })
    const told: string[] = []
    at.app.on('event.unrouted', ({ flow, reason }) => void told.push(`${reason} ${flow}`))
    at.app.on('flow.unserved', ({ flow }) => void told.push(`unserved ${flow}`))
    const served = JSON.stringify({ globs: ['away'], by: 'another', servedAt: NOW, internal: false })
    await at.ask(`insert into docs values ('flow', 'away', 1, convert_to('${served}', 'UTF8'))`)
    // Maintenance is slow here: each task runs once an hour.
    await at.advance('1h')
    await at.ask(`select publish('x', to_flows => array['f', 'nope']), publish('y', to_flows => array['away'])`)
    await at.advance('3h')
    // If a flow is only away for a time, its event is waited for, in the order of the transaction.
    expect(await at.ask('select flow, reason from marks order by flow')).toEqual([
      { flow: 'away', reason: 'outbox' },
      { flow: 'nope', reason: 'unknown-flow' },
    ])
    expect(told.toSorted()).toEqual(['unknown-flow nope', 'unserved away', 'unserved nope'])
    const ran: string[] = []
    const store = await openPostgresStore({ url, schema: at.schema, acceptLoss: true })
    const other = new Sluice({ store, log: false })
    for (const flow of ['nope', 'away']) other.flow(flow, { on: () => false, run: () => void ran.push(flow) })
    ends.push(() => store.close())
    ends.push(() => other.stop())
    await other.start()
    await expect.poll(() => ran.toSorted()).toEqual(['away', 'nope'])
  })

  test('D7 internal flows are rejected', async () => {
    const ticks: string[] = []
    const declare = (app: Sluice): unknown => app.every('tick', '30d', () => void ticks.push('tick'))
    const at = await atWork({ url, now: Date.UTC(2026, 0, 1), declare })
    await at.ask(`select publish('x', to_flows => array['every/tick'])`)
    await at.advance('3h')
    expect(await at.ask('select flow, reason from marks')).toEqual([{ flow: 'every/tick', reason: 'unknown-flow' }])
    expect(ticks).toEqual([])
  })

  test('D7 events of many writers are all there, once, committed and in order', async () => {
    const schema = `outbox_${process.pid}_${made++}`
    const figure = await outboxWriters({ url, schema, writers: 12, events: 1_500, random: randomFrom(7) })
    const { missing, twice, undone, disordered } = figure
    expect({ missing, twice, undone, disordered }).toEqual({ missing: 0, twice: 0, undone: 0, disordered: 0 })
  })

  test('an invalid event gets an error that names the field, and the transaction can continue from a savepoint', async () => {
    const { schema, app } = await stage()
    const tx = await client()
    const wrong = [
      [`''`, 'type is missing'],
      [`null`, 'type is missing'],
      [`repeat('t', 1025)`, 'type is too long'],
      [`'x', source => 'sluice.own'`, 'source is missing or ours'],
      [`'x', source => 'sluice'`, 'source is missing or ours'],
      [`'x', source => repeat('s', 1025)`, 'source is too long'],
      [`'x', '{}', body => 'y'`, 'both data and body'],
      [`'x', attributes => '[]'`, 'attributes must be an object'],
      [`'x', id => ''`, 'id is empty or too long'],
      [`'x', id => repeat('i', 129)`, 'id is empty or too long'],
      [`'x', dedupe_id => repeat('d', 1025)`, 'dedupe_id is empty or too long'],
      [`'x', tenant => repeat('é', 513)`, 'tenant is too long'],
      [`'x', subject => repeat('s', 16385)`, 'subject is too long'],
      [`'x', "time" => '275760-09-13 00:00:01+00'`, 'time is none that a date can be'],
      [`'x', "time" => 'infinity'`, 'time is none that a date can be'],
      [`'x', "time" => null`, 'time is none that a date can be'],
      [`'x', dedupe_for => '-1 second'`, 'dedupe_for is no length of time'],
      [`'x', to_flows => array['f', null]`, 'to_flows is no list of names'],
      [`'x', to_flows => array['']`, 'to_flows is no list of names'],
      [`'x', to_flows => '{}'`, 'to_flows is no list of names'],
      [`'x', to_flows => array[array['f'], array['g']]`, 'to_flows is no list of names'],
      [`'x', body => convert_to(repeat('z', 16777217), 'UTF8')`, 'data and attributes are too long'],
      [`'x', attributes => jsonb_build_object('a', repeat('z', 16777217))`, 'data and attributes are too long'],
    ] as const
    for (const [given, message] of wrong)
      await expect(tx.query(`select ${schema}.publish(${given})`), given).rejects.toMatchObject({
        message: `sluice: ${message}`,
        code: '22023',
        hint: expect.any(String),
      })
    await expect(app.publish({ type: 'x', body: Buffer.alloc(16_777_217) }, { tx })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
    await expect(app.publish({ type: 'x', time: 8.64e15 + 1 }, { tx })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    await expect(app.publish({ type: 'x' }, { tx, at: Date.now() + 1_000 })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    })
    await expect(app.publish({ type: '' }, { tx })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    // The same checks apply to rows that are inserted without the function.
    await tx.query('begin')
    await app.publish({ type: 'x' }, { tx })
    await expect(tx.query(`update ${schema}.outbox set time = 8640000000000001`)).rejects.toThrow('outbox_fits')
    await tx.query('rollback')
    const embedded = new Sluice({ store: 'memory:', log: false })
    await expect(embedded.publish({ type: 'x' }, { tx })).rejects.toThrow('tx needs a PostgreSQL store')
    await embedded.stop()
  })
})
