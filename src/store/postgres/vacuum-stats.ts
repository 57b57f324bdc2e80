// `VacuumStatsReader` reads how many dead rows the schema's tables hold, and which transaction, snapshot or replication slot
// keeps vacuum from removing them. It sends one small query at most every ten seconds.
import type { Pool } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { SnapshotHolder, VacuumStats } from '../../model/vacuum-stats.ts'

export interface VacuumStatsReaderDependencies {
  readonly pool: Pool
  readonly schema: string
  readonly clock: Clock
}

const READ_INTERVAL: Millis = 10_000

/**
 * Sessions whose transaction or snapshot keeps dead rows of this database. The snapshot of a vacuum keeps none. A session
 * without a database belongs to a standby, and keeps the rows of all databases, or to a client that still connects and keeps none.
 */
export const HOLDING_SESSIONS = `pg_stat_activity
  where coalesce(backend_xmin, backend_xid) is not null
    and (datname = current_database() or datname is null and backend_type is distinct from 'client backend')
    and pid <> pg_backend_pid() and pid not in (select pid from pg_stat_progress_vacuum)`

/** Rows of a partition count for its table. A replication slot that is up to date keeps no rows. */
const VACUUM_QUERY = `
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

interface VacuumRow {
  readonly dead: Readonly<Record<string, number>> | null
  readonly holders: readonly HolderRow[] | null
}

/** `age` and `state` of another role's session are null for a role that may not see them. */
interface HolderRow extends Pick<SnapshotHolder, 'kind' | 'name'> {
  readonly application: string | null
  readonly user: string | null
  readonly state: string | null
  readonly xmin: string
  readonly age: Millis | null
}

export class VacuumStatsReader {
  readonly #dependencies: VacuumStatsReaderDependencies
  /** When each snapshot of unknown age was first seen. */
  #firstSeen: ReadonlyMap<string, Millis> = new Map()
  #last: { readonly at: Millis; readonly found: Promise<VacuumStats | undefined> } | undefined

  constructor(dependencies: VacuumStatsReaderDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * `read` returns stats of the last ten seconds. It returns undefined if the server rejects the query, so that the other stats
   * do not fail.
   */
  read(): Promise<VacuumStats | undefined> {
    const at = this.#dependencies.clock.monotonic()
    if (this.#last === undefined || at - this.#last.at >= READ_INTERVAL) {
      this.#last = { at, found: this.#query(at).catch(() => undefined) }
    }
    return this.#last.found
  }

  async #query(at: Millis): Promise<VacuumStats> {
    const { pool, schema } = this.#dependencies
    const { rows } = await pool.query<VacuumRow>(VACUUM_QUERY, [schema])
    const { dead, holders } = rows[0] ?? { dead: null, holders: null }
    const before = this.#firstSeen
    const seen = new Map<string, Millis>()
    const known = (holders ?? []).map((row): SnapshotHolder => {
      const snapshot = `${row.kind} ${row.name} ${row.xmin}`
      const since = before.get(snapshot) ?? at
      if (row.age === null) seen.set(snapshot, since)
      return {
        kind: row.kind,
        name: row.name,
        application: row.application ?? '',
        user: row.user ?? '',
        state: row.state ?? '',
        age: Math.max(0, row.age ?? at - since),
        isMinimumAge: row.age === null,
      }
    })
    this.#firstSeen = seen
    return { deadRows: dead ?? {}, oldestSnapshot: known.toSorted((one, other) => other.age - one.age)[0] }
  }
}
