// Quoted by docs/postgres.md: an order and its event in one transaction of `pg`, both or neither.
import type { Pool } from 'pg'
import type { Sluice } from 'sluice'

interface Order {
  readonly id: number
  readonly customer: string
  readonly total: number
}

export async function placeOrder(app: Sluice, pool: Pool, order: Order): Promise<void> {
  // Not the pool itself: each of its queries is a transaction of its own.
  const tx = await pool.connect()
  try {
    await tx.query('begin')
    const { id, customer, total } = order
    await tx.query('insert into orders (id, customer, total) values ($1, $2, $3)', [id, customer, total])
    await app.publish({ type: 'order.placed', subject: customer, data: { id, total } }, { tx })
    await tx.query('commit')
  } catch (error) {
    await tx.query('rollback')
    throw error
  } finally {
    tx.release()
  }
}
