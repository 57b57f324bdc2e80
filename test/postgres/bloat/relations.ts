// Reads the sizes of the tables and indexes of a schema, their dead rows, and their statistics.
import type pg from 'pg'

export interface Look {
  /** Sizes in bytes by relation: `lanes`, `lanes.lanes_pkey`, `events.toast`. */
  readonly sizes: Readonly<Record<string, number>>
  readonly tables: Readonly<Record<string, TableLook>>
}

interface TableLook {
  /** The size with indexes and out-of-row storage. */
  readonly total: number
  readonly counted: number
  /** The server's estimate. */
  readonly live: number
  readonly dead: number
  readonly inserts: number
  readonly updates: number
  /** The updates that touched no index (HOT). */
  readonly hot: number
  readonly deletes: number
  readonly autovacuums: number
}

const SIZES = `
with own as (
  select oid, relname as name, reltoastrelid as toast from pg_class
  where relkind = 'r' and relnamespace = (select oid from pg_namespace where nspname = $1)
), all_of (name, oid) as (
  select name, oid from own
  union all select own.name || '.' || c.relname, c.oid
    from own join pg_index i on i.indrelid = own.oid join pg_class c on c.oid = i.indexrelid
  union all select name || '.toast', toast from own where toast <> 0
  union all select own.name || '.toast_index', i.indexrelid from own join pg_index i on i.indrelid = own.toast
)
select json_object_agg(name, pg_relation_size(oid)) as sizes from all_of`

const TABLES = `
select relname as name, pg_total_relation_size(relid)::float8 as total, n_live_tup::float8 as live, n_dead_tup::float8 as dead,
  n_tup_ins::float8 as inserts, n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as hot, n_tup_del::float8 as deletes,
  autovacuum_count::float8 as autovacuums
from pg_stat_user_tables where schemaname = $1 order by 1`

export async function look(client: pg.Client, schema: string): Promise<Look> {
  const { rows: sizes } = await client.query<Pick<Look, 'sizes'>>(SIZES, [schema])
  const { rows: tables } = await client.query<Omit<TableLook, 'counted'> & { readonly name: string }>(TABLES, [schema])
  const looked: Record<string, TableLook> = {}
  for (const { name, ...table } of tables) {
    const { rows } = await client.query<{ readonly n: number }>(
      `select count(*)::float8 as n from "${schema}"."${name}"`,
    )
    looked[name] = { ...table, counted: rows[0]?.n ?? 0 }
  }
  return { sizes: sizes[0]?.sizes ?? {}, tables: looked }
}
