// A connection has to be one session for as long as it lasts: settings, prepared statements and LISTEN are kept there. A pooler that
// hands out another session for each transaction loses them, and leaves ours to strangers.
import type { Pool } from 'pg'
import { SluiceError } from '../../errors.ts'
import type { Connection } from './connections.ts'

const SESSION = `select pg_backend_pid() || ' ' || current_setting('plan_cache_mode')`

/** Who shares sessions gives the one that was used last to whoever comes next: `other` takes it, and it is not there again. */
export async function refuseSharedSessions(pool: Pool, other: Connection): Promise<void> {
  const session = async (): Promise<string> =>
    String((await pool.query<[string]>({ text: SESSION, rowMode: 'array' })).rows[0]?.[0])
  const before = await session()
  await other.rows('begin')
  await other.rows(SESSION)
  const after = await session()
  await other.rows('rollback')
  if (before !== after || !after.endsWith(' force_generic_plan')) {
    throw new SluiceError('STORE_POOLED', 'A connection to the server changed its session between two transactions.')
  }
}
