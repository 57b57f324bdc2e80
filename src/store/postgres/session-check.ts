// `assertDedicatedSession` rejects a pooler that switches server sessions between transactions. Settings, prepared statements
// and LISTEN belong to a session: such a pooler loses them, or leaves ours to other clients.
import type { ClientBase, Pool } from 'pg'
import { SluiceError } from '../../errors.ts'

const SESSION_QUERY = `select pg_backend_pid() as pid, current_setting('plan_cache_mode') as mode`
/** A pooler that takes sessions in turn shows itself when one of two clients sees two sessions; one that takes the session
    used last, when both clients see the same one. */
const LOOKS = 3

/**
 * `assertDedicatedSession` rejects a pooler that gives each transaction another session. Two clients look at their sessions in
 * turn: each must always see its own, with our settings. The check prepares no statement: an earlier start may have left
 * statements of the same names in the sessions of the pooler.
 */
export async function assertDedicatedSession(pool: Pool, other: ClientBase): Promise<void> {
  const [ours, others] = [new Set<string>(), new Set<string>()]
  for (let n = 0; n < LOOKS; n++) {
    await look(pool, ours)
    await look(other, others)
  }
  // A pooler with a free session for each client at any time may show itself only beside an open transaction.
  await other.query('begin')
  await look(other, others)
  await look(pool, ours)
  await other.query('rollback')
  const [session = '', ...more] = [...ours]
  if (more.length === 0 && others.size === 1 && !others.has(session) && session.endsWith(' force_generic_plan')) return
  throw new SluiceError(
    'STORE_POOLER_UNSUPPORTED',
    'A connection to the server changed its session between two transactions.',
  )
}

async function look(client: Pool | ClientBase, seen: Set<string>): Promise<void> {
  const { rows } = await client.query<{ pid: number; mode: string }>(SESSION_QUERY)
  for (const { pid, mode } of rows) seen.add(`${pid} ${mode}`)
}
