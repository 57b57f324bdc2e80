// Quoted by docs/coming-from/pg-boss.md: an order and its event in one transaction, and one summary per customer and minute.
import type { Pool } from 'pg'
import { defineEvent, Sluice } from 'sluice'
import { z } from 'zod'

export type SendSummary = (customer: string, totals: readonly number[]) => Promise<void>

const orderPlaced = defineEvent('order.placed', z.object({ customer: z.string(), total: z.number() }))

export function createApp(store: string, sendSummary: SendSummary): Sluice {
  const app = new Sluice({ store })
  app.flow('summary', {
    on: orderPlaced,
    key: (event) => event.data.customer,
    batch: '60s',
    retry: ['30s', '60s'],
    run: ({ key, events }) =>
      sendSummary(
        key,
        events.map((event) => event.data.total),
      ),
  })
  return app
}

export async function placeOrder(app: Sluice, pool: Pool, customer: string, total: number): Promise<void> {
  const tx = await pool.connect()
  try {
    await tx.query('begin')
    await tx.query('insert into orders (customer, total) values ($1, $2)', [customer, total])
    await app.publish(orderPlaced({ customer, total }), { tx })
    await tx.query('commit')
  } catch (error) {
    await tx.query('rollback')
    throw error
  } finally {
    tx.release()
  }
}
