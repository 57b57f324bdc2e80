// `SettingsTable` keeps what tenants have changed, in a table of the app's own: on PostgreSQL in the same database as the store, else in a
// SQLite file beside it. Each message reads it, so a change counts in every process from the next message on.
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Surroundings } from '../kit/example.ts'
import { withDefaults, type Settings, type SettingsChange } from './domain/settings.ts'

export interface SettingsTable {
  /** The settings of the lines, in their order. */
  of(lines: readonly string[]): Promise<readonly Settings[]>
  /** Changes some settings of a line, and returns all of them. */
  change(line: string, change: SettingsChange): Promise<Settings>
}

interface Row {
  readonly line: string
  readonly changed: string
}

interface Database {
  query(sql: string, values: readonly string[]): Promise<readonly Row[]>
}

const CREATE = 'create table if not exists assistant_settings (line text primary key, changed text not null)'
const SAVE = `insert into assistant_settings (line, changed) values ($1, $2)
  on conflict (line) do update set changed = excluded.changed`
/** Two processes that create one table at the same time would disturb each other. */
const ALONE = `begin; select pg_advisory_xact_lock(hashtext('assistant_settings')); ${CREATE}; commit`

export function settingsTable({ store, watch }: Pick<Surroundings, 'store' | 'watch'>): SettingsTable {
  const database = store.startsWith('postgres') ? onPostgres(store, watch) : onSqlite(store)
  const read = async (lines: readonly string[]): Promise<readonly Settings[]> => {
    const names = [...new Set(lines)]
    const marks = names.map((_, n) => `$${n + 1}`).join()
    const rows = await database.query(`select line, changed from assistant_settings where line in (${marks})`, names)
    const changed = new Map(rows.map((row) => [row.line, JSON.parse(row.changed) as SettingsChange]))
    return lines.map((line) => withDefaults(line, changed.get(line) ?? {}))
  }
  return {
    of: read,
    async change(line, change) {
      const [row] = await database.query('select line, changed from assistant_settings where line = $1', [line])
      const changed = { ...(row === undefined ? {} : (JSON.parse(row.changed) as SettingsChange)), ...change }
      await database.query(SAVE, [line, JSON.stringify(changed)])
      return withDefaults(line, changed)
    },
  }
}

function onPostgres(store: string, watch: Surroundings['watch']): Database {
  const pool = new pg.Pool({ connectionString: store, max: 4, idleTimeoutMillis: 5_000, allowExitOnIdle: true })
  // The pool replaces a connection that broke while it was idle.
  pool.on('error', () => {})
  const watched = watch(pool)
  let created: Promise<unknown> | undefined
  return {
    async query(sql, values) {
      created ??= watched.query(ALONE)
      await created.catch((error: unknown) => {
        created = undefined
        throw error
      })
      return (await watched.query<Row>(sql, [...values])).rows
    },
  }
}

function onSqlite(store: string): Database {
  const file = store.startsWith('sqlite:') ? store.slice('sqlite:'.length) : ':memory:'
  const database = new DatabaseSync(file === ':memory:' ? file : `${file}-settings`)
  database.exec(`pragma busy_timeout = 5000; ${CREATE}`)
  return {
    query: async (sql, values) =>
      database.prepare(sql.replaceAll(/\$\d+/g, '?')).all(...values) as unknown as readonly Row[],
  }
}
