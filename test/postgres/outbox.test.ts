// D7 and L17: what is published inside a transaction of somebody else's is published if and only if that commits, in its
// order, and however long it stays open nobody waits for it.
import pg from 'pg'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { randomFrom } from '../../bench/workload.ts'
import { outboxWriters } from './outbox-writers.ts'

let made = 0

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
    /** By key, what ran. */
    readonly ran: string[]
    readonly until: (n: number) => Promise<void>
  }

  /** An app that notes what it runs, one event at a time. */
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

  test('D7 is published by the commit, in the order of the transaction, and vanishes with a rollback', async () => {
    const { schema, ran, until, store } = await stage()
    const [one, other] = [await client(), await client()]
    await one.query('begin')
    await other.query('begin')
    for (let n = 0; n < 20; n++) {
      await one.query(`select ${schema}.publish('order.paid', $1)`, [JSON.stringify({ n })])
      await other.query(`select ${schema}.publish('order.lost', $1)`, [JSON.stringify({ n })])
    }
    await other.query('rollback')
    expect((await store.unrouted({ n: 100, lease: 1, reasons: ['outbox'], flows: [] })).marks).toEqual([])
    await one.query('commit')
    await until(20)
    expect(ran).toEqual(Array.from({ length: 20 }, (_, n) => `all order.paid ${n}`))
  })

  test('D7 a transaction that stays open blocks neither its own key nor anybody else', async () => {
    const { schema, app, ran, until } = await stage()
    const open = await client()
    await open.query('begin')
    await open.query(`select ${schema}.publish('order.paid', '{"n": 1}', subject => 'ada', dedupe_id => 'same')`)
    const before = performance.now()
    await app.publish({ type: 'order.paid', subject: 'ada', data: { n: 2 } })
    await app.publish({ type: 'order.paid', subject: 'bob', data: { n: 3 }, dedupeId: 'same' })
    await until(2)
    expect(performance.now() - before).toBeLessThan(5_000)
    expect(ran.toSorted()).toEqual(['ada order.paid 2', 'bob order.paid 3'])
    await open.query('commit')
    // The same identity was published meanwhile: it is a duplicate, whoever began first.
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

  test('D7 L10 an event that is known is not run twice, through whichever door it comes', async () => {
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

  test('D7 to: only the flows that were named', async () => {
    const { schema, app, ran, until } = await stage()
    const tx = await client()
    await tx.query(`select ${schema}.publish('order.paid', to_flows => array['asked'])`)
    await app.publish({ type: 'order.sent' }, { tx, to: 'asked' })
    await app.publish({ type: 'order.seen' })
    await until(1)
    await expect
      .poll(() => ran.toSorted(), { timeout: 15_000 })
      .toEqual(['all order.seen ', 'asked order.paid', 'asked order.sent'])
  })

  test('D7 of many writers nothing is missing, twice, undone or out of order, and all is routed soon', async () => {
    const schema = `outbox_${process.pid}_${made++}`
    const figure = await outboxWriters({ url, schema, writers: 12, events: 1_500, random: randomFrom(7) })
    const { missing, twice, undone, disordered } = figure
    expect({ missing, twice, undone, disordered }).toEqual({ missing: 0, twice: 0, undone: 0, disordered: 0 })
    // On a machine that does other things; the proof asks for one second.
    expect(figure.routedP99).toBeLessThan(5_000)
  })

  test('bad input gets an error that names the field, and the transaction can go on from a savepoint', async () => {
    const { schema, app } = await stage()
    const tx = await client()
    const wrong = [
      `publish('')`,
      `publish(null)`,
      `publish('x', source => 'sluice.own')`,
      `publish('x', '{}', body => 'y')`,
    ]
    for (const call of wrong)
      await expect(tx.query(`select ${schema}.${call}`)).rejects.toMatchObject({
        code: '22023',
        hint: expect.any(String),
      })
    await expect(tx.query(`select ${schema}.publish('x', attributes => '[]')`)).rejects.toThrow(
      'attributes must be an object',
    )
    await expect(tx.query(`select ${schema}.publish('x', id => repeat('i', 129))`)).rejects.toThrow('outbox_id_check')
    await expect(tx.query(`select ${schema}.publish('x', tenant => repeat('é', 513))`)).rejects.toThrow(
      'outbox_tenant_check',
    )
    await expect(tx.query(`select ${schema}.publish('x', subject => repeat('s', 16385))`)).rejects.toThrow(
      'outbox_subject_check',
    )
    await expect(app.publish({ type: 'x' }, { tx, at: Date.now() + 1_000 })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    })
    await expect(app.publish({ type: '' }, { tx })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    const embedded = new Sluice({ store: 'memory:', log: false })
    await expect(embedded.publish({ type: 'x' }, { tx })).rejects.toThrow('tx needs a PostgreSQL store')
    await embedded.stop()
  })
})
