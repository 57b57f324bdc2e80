// How well the server keeps house in our schema: the rows that are done with and take room, and whose open transaction or
// snapshot keeps them from being cleared away. One small query, however often it is asked for.
import type { Pool } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { SnapshotHolder, StoreHygiene } from '../../model/hygiene.ts'

export interface HygieneParts {
  readonly pool: Pool
  readonly schema: string
  readonly clock: Clock
}

const LOOK_EVERY: Millis = 10_000

/**
 * Sessions whose transaction or snapshot keeps rows of this database. A vacuum's own keeps nothing back; a session that
 * belongs to no database is a standby's, and holds all of them.
 */
export const HOLDING_SESSIONS = `pg_stat_activity
  where coalesce(backend_xmin, backend_xid) is not null and coalesce(datname, current_database()) = current_database()
    and pid <> pg_backend_pid() and pid not in (select pid from pg_stat_progress_vacuum)`

/** Rows of a partition count for its table. A slot that is up to date keeps nothing back. */
const LOOK = `
with dead (name, n) as (
  select coalesce(whole.relname, c.relname), sum(pg_stat_get_dead_tuples(c.oid))
  from pg_class c left join pg_inherits i on i.inhrelid = c.oid left join pg_class whole on whole.oid = i.inhparent
  where c.relkind = 'r' and c.relnamespace = (select oid from pg_namespace where nspname = $1)
  group by 1
), holders (kind, name, application, "user", state, xmin, age) as (
  select 'session', pid::text, application_name, usename, state, coalesce(backend_xmin, backend_xid)::text,
    extract(epoch from clock_timestamp() - xact_start) * 1000
  from ${HOLDING_SESSIONS}
  union all
  select 'prepared', gid, '', owner, '', transaction::text, extract(epoch from clock_timestamp() - prepared) * 1000
  from pg_prepared_xacts where database = current_database()
  union all
  select 'slot', slot_name, '', '', '', xmin::text, null from pg_replication_slots where age(xmin) > 1
)
select (select json_object_agg(name, n) from dead) as dead, (select json_agg(holders) from holders) as holders`

interface Found {
  readonly dead: Readonly<Record<string, number>> | null
  readonly holders: readonly HolderRow[] | null
}

/** `age` and `state` of somebody else's session are null for a role that may not see them. */
interface HolderRow extends Pick<SnapshotHolder, 'kind' | 'name'> {
  readonly application: string | null
  readonly user: string | null
  readonly state: string | null
  readonly xmin: string
  readonly age: Millis | null
}

export class Hygiene {
  readonly #parts: HygieneParts
  /** When a view whose beginning nobody tells us was first seen. */
  #seen: ReadonlyMap<string, Millis> = new Map()
  #last: { readonly at: Millis; readonly found: Promise<StoreHygiene | undefined> } | undefined

  constructor(parts: HygieneParts) {
    this.#parts = parts
  }

  /** As it was within the last ten seconds. Undefined where the server does not let us look: figures must not fail for it. */
  look(): Promise<StoreHygiene | undefined> {
    const at = this.#parts.clock.monotonic()
    if (this.#last === undefined || at - this.#last.at >= LOOK_EVERY) {
      this.#last = { at, found: this.#lookAt(at).catch(() => undefined) }
    }
    return this.#last.found
  }

  async #lookAt(at: Millis): Promise<StoreHygiene> {
    const { pool, schema } = this.#parts
    const { rows } = await pool.query<Found>(LOOK, [schema])
    const { dead, holders } = rows[0] ?? { dead: null, holders: null }
    const before = this.#seen
    const seen = new Map<string, Millis>()
    const known = (holders ?? []).map((row): SnapshotHolder => {
      const view = `${row.kind} ${row.name} ${row.xmin}`
      const since = before.get(view) ?? at
      if (row.age === null) seen.set(view, since)
      return {
        kind: row.kind,
        name: row.name,
        application: row.application ?? '',
        user: row.user ?? '',
        state: row.state ?? '',
        age: Math.max(0, row.age ?? at - since),
        isAtLeast: row.age === null,
      }
    })
    this.#seen = seen
    return { deadRows: dead ?? {}, oldest: known.toSorted((one, other) => other.age - one.age)[0] }
  }
}
