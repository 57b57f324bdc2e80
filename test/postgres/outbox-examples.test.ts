// D7: the examples of docs/postgres.md run as they are, on the schema and the tables that they name.
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import type { Sluice as Built } from 'sluice'
import { afterEach, describe, expect, inject, test } from 'vitest'
import * as byDrizzle from '../../examples/outbox-drizzle.ts'
import * as byKysely from '../../examples/outbox-kysely.ts'
import * as byPg from '../../examples/outbox-pg.ts'
import { Sluice } from '../../src/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

// The commit checks the reference, when the event is already in the outbox: the rollback must remove the event.
const TABLES = `
create table customers (name text primary key);
insert into customers values ('ada'), ('bob'), ('O''Hara');
create table orders (
  id int primary key,
  customer text not null references customers deferrable initially deferred,
  total int not null,
  shipped boolean not null default false
)`
const FOREIGN_KEY_VIOLATION = '23503'

interface Order {
  readonly id: number
  readonly customer: string
  readonly total: number
}

interface Stage {
  readonly app: Sluice
  readonly pool: pg.Pool
  /** Type, subject and data of each event, in the order of the runs. */
  readonly ran: string[]
  readonly until: (n: number) => Promise<void>
}

type Place = (order: Order) => Promise<void>

const PLACED: Readonly<Record<string, (stage: Stage) => Place>> = {
  pg: ({ app, pool }) => {
    // For the compiler, the package's own name means dist/, whose classes differ from those of src/.
    const built = app as unknown as Built
    return (order) => byPg.placeOrder(built, pool, order)
  },
  Kysely: ({ pool }) => {
    const db = byKysely.openDatabase(pool)
    return (order) => byKysely.placeOrder(db, order)
  },
  Drizzle: ({ pool }) => {
    const db = byDrizzle.openDatabase(pool)
    return (order) => byDrizzle.placeOrder(db, order)
  },
}

let made = 0

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  /** The test uses its own database, so that the examples can name the default schema. */
  async function emptyDatabase(): Promise<string> {
    const name = `outbox_examples_${process.pid}_${made++}`
    const server = new pg.Client({ connectionString: url })
    await server.connect()
    ends.push(async () => {
      await server.query(`drop database if exists ${name} with (force)`)
      await server.end()
    })
    await server.query(`create database ${name}`)
    return url.replace(/\/[^/?]*(?=\?|$)/, `/${name}`)
  }

  async function stage(): Promise<Stage> {
    const connectionString = await emptyDatabase()
    const store = await openPostgresStore({ url: connectionString, acceptLoss: true })
    const app = new Sluice({ store, log: false })
    const pool = new pg.Pool({ connectionString })
    ends.push(async () => {
      await pool.end()
      await app.stop()
      await store.close()
    })
    await pool.query(TABLES)
    const ran: string[] = []
    const waiting = new Set<() => void>()
    app.flow('note', {
      on: 'order.*',
      run: ({ events }) => {
        for (const { type, subject, data } of events) ran.push(`${type} ${subject} ${JSON.stringify(data)}`)
        for (const look of waiting) look()
      },
    })
    await app.start()
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
    return { app, pool, ran, until }
  }

  test.each(Object.keys(PLACED))('D7 the example for %s', async (name) => {
    const on = await stage()
    const place = PLACED[name]?.(on) ?? expect.fail(name)
    await place({ id: 7, customer: 'ada', total: 4200 })
    const undone = await place({ id: 8, customer: 'nobody', total: 1 }).then(() => 'committed', codeOf)
    expect(undone).toBe(FOREIGN_KEY_VIOLATION)
    await place({ id: 9, customer: "O'Hara", total: 900 })
    expect(await kept(on.pool)).toEqual({ orders: [7, 9], events: 2 })
    await on.until(2)
    expect(on.ran.toSorted()).toEqual([
      `order.placed O'Hara {"id":9,"total":900}`,
      'order.placed ada {"id":7,"total":4200}',
    ])
  })

  test('D7 the example in SQL', async () => {
    const { pool, ran, until } = await stage()
    const text = await readFile(new URL('../../examples/outbox.sql', import.meta.url), 'utf8')
    const client = await pool.connect()
    for (const statement of statementsOf(text)) await client.query(statement)
    client.release()
    expect(await kept(pool)).toEqual({ orders: [7, 9], events: 4 })
    await until(4)
    expect(ran.toSorted()).toEqual([
      'order.placed ada {"id":7,"total":4200}',
      'order.placed bob {"id":9,"total":900}',
      'order.shipped ada {"id":7}',
      'order.shipped bob {"id":9}',
    ])
  })
})

/** Splits a file as psql does: at semicolons outside of texts and comments. */
function statementsOf(text: string): readonly string[] {
  return text.match(/(?:'[^']*'|--.*|[^;])+;/g) ?? []
}

/** Some libraries wrap the server's errors. */
function codeOf(error: { readonly code?: string; readonly cause?: { readonly code?: string } }): string | undefined {
  return error.code ?? error.cause?.code
}

interface Kept {
  readonly orders: readonly number[]
  readonly events: number
}

/** One statement reads both, so no event is between outbox and events. An event that is in neither will not run later. */
async function kept(pool: pg.Pool): Promise<Kept | undefined> {
  const { rows } = await pool.query<Kept>(`
    select array(select id from orders order by id) as orders,
      (select count(*)::int from (select id from sluice.outbox union select id from sluice.events) known) as events`)
  return rows[0]
}
