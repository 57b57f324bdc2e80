// `assertDedicatedSession` rejects a pooler that switches server sessions between transactions. Settings, prepared statements
// and LISTEN belong to a session: such a pooler loses them, or leaves ours to other clients.
import type { ClientBase, Pool } from 'pg'
import { SluiceError } from '../../errors.ts'

const SESSION_QUERY = `select pg_backend_pid() || ' ' || current_setting('plan_cache_mode')`

/**
 * `assertDedicatedSession` rejects a pooler that gives each transaction another session. The pooler would hand the session that
 * was used last to the next client, so `other` takes it and the pool does not get it back. The check prepares no statement: an
 * earlier start may have left statements of the same names in the sessions of the pooler.
 */
export async function assertDedicatedSession(pool: Pool, other: ClientBase): Promise<void> {
  const session = async (): Promise<string> =>
    String((await pool.query<[string]>({ text: SESSION_QUERY, rowMode: 'array' })).rows[0]?.[0])
  const before = await session()
  await other.query('begin')
  await other.query(SESSION_QUERY)
  const after = await session()
  await other.query('rollback')
  if (before !== after || !after.endsWith(' force_generic_plan')) {
    throw new SluiceError(
      'STORE_POOLER_UNSUPPORTED',
      'A connection to the server changed its session between two transactions.',
    )
  }
}
