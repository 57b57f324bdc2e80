// Quoted by docs/postgres.md: an order and its event in one transaction of Kysely, both or neither.
import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Pool } from 'pg'

interface Order {
  readonly id: number
  readonly customer: string
  readonly total: number
}

interface Database {
  orders: Order
}

export function openDatabase(pool: Pool): Kysely<Database> {
  return new Kysely({ dialect: new PostgresDialect({ pool }) })
}

export async function placeOrder(db: Kysely<Database>, order: Order): Promise<void> {
  const { id, customer, total } = order
  await db.transaction().execute(async (tx) => {
    await tx.insertInto('orders').values(order).execute()
    const data = JSON.stringify({ id, total })
    // By `tx`: what goes through `db` is not part of the transaction.
    await sql`select sluice.publish('order.placed', ${data}, subject => ${customer})`.execute(tx)
  })
}
