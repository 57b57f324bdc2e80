// Tests the cost of stats, which are read every second: it grows with the number of flows, not of dead letters.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import type { Store } from '../../src/store/contract/index.ts'
import { buildSessionSql } from '../../src/store/postgres/connections.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const { query } = pg.Client.prototype
const MANY_EVENTS = `insert into events
    (seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes, size, request, body)
  select n, 'e' || n, 'i' || n, 0, 'shop', 't', 0, 'tenant ' || n % 10000, 'user ' || n % 10000, '', 0, '{}', 1, '', 'x'
  from generate_series(1, 100000) n`
const LETTERS = 20_000
const MANY_LETTERS = `insert into letters
  select 'l' || n, n, 'lane', 'f' || n % 2, '', '', '', '', 'dead', '', n, 1, 0, false, '{}', repeat('x', 1000), ''
  from generate_series(1, ${LETTERS}) n`
let opened = 0

/** Collects the statements of a call on a table, with their values. */
async function asked(table: string, call: () => Promise<unknown>): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const texts = new Map<string, readonly unknown[]>()
  pg.Client.prototype.query = function (this: pg.Client, ...given: readonly unknown[]) {
    const { text, values } = given[0] as { readonly text: string; readonly values?: readonly unknown[] }
    if (text?.includes(table)) texts.set(text, values ?? [])
    return (query as (...all: unknown[]) => unknown).apply(this, [...given])
  } as typeof query
  await call()
  pg.Client.prototype.query = query
  return texts
}

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  let store: Store
  let client: pg.Client

  beforeEach(async () => {
    const schema = `figures_${process.pid}_${opened++}`
    store = await openPostgresStore({ url, schema, connections: 2, acceptLoss: true })
    client = new pg.Client({ connectionString: url })
    await client.connect()
    // Sets the same plan options as the sessions of the store.
    await client.query(buildSessionSql({ schema, acceptLoss: true }))
  })

  afterEach(async () => {
    pg.Client.prototype.query = query
    await Promise.all([store.close(), client.end()])
  })

  it('stats read no rows of dead letters', async () => {
    await client.query(MANY_LETTERS)
    await client.query('vacuum analyze letters')
    const texts = await asked('letters', async () => {
      const { deadLetters, flows } = await store.stats()
      expect([deadLetters, flows.map(({ flow }) => flow).toSorted()]).toEqual([LETTERS, ['f0', 'f1']])
    })
    expect(texts.size).toBe(2)
    for (const [text, values] of texts) {
      const plan = await client.query<{ readonly 'QUERY PLAN': string }>(`explain ${text}`, [...values])
      const steps = plan.rows.map((row) => row['QUERY PLAN']).filter((step) => step.includes(' on letters'))
      expect(steps.length).toBeGreaterThan(0)
      for (const step of steps) expect(step).toContain('Index Only Scan')
    }
  })

  it('records are found by subject and tenant without reading the events of others', async () => {
    await client.query(MANY_EVENTS)
    await client.query('vacuum analyze events')
    for (const [filter, index] of [
      [{ subject: 'user 7' }, 'events_subject'],
      [{ tenant: 'tenant 7' }, 'events_tenant'],
    ] as const) {
      const texts = await asked('events', async () => {
        const { items, next } = await store.find({ kind: 'events', filter, cursor: '', n: 100 })
        expect([items.length, next]).toEqual([10, undefined])
      })
      expect(texts.size).toBe(2)
      for (const [text, values] of texts) {
        const plan = await client.query<{ readonly 'QUERY PLAN': string }>(`explain ${text}`, [...values])
        const steps = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
        expect(steps).toContain(index)
        expect(steps).not.toContain('Seq Scan on events')
      }
    }
  })
})
