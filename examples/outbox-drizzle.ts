// Quoted by docs/postgres.md: an order and its event in one transaction of Drizzle, both or neither.
import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { Pool } from 'pg'

const orders = pgTable('orders', {
  id: integer().primaryKey(),
  customer: text().notNull(),
  total: integer().notNull(),
})

export function openDatabase(pool: Pool): NodePgDatabase {
  return drizzle(pool)
}

export async function placeOrder(db: NodePgDatabase, order: typeof orders.$inferInsert): Promise<void> {
  const { id, customer, total } = order
  await db.transaction(async (tx) => {
    await tx.insert(orders).values(order)
    const data = JSON.stringify({ id, total })
    // By `tx`: what goes through `db` is not part of the transaction.
    await tx.execute(sql`select sluice.publish('order.placed', ${data}, subject => ${customer})`)
  })
}
