// `SettingsTable` keeps what tenants have changed, in a table of the app's own: on PostgreSQL in the same database as the store, else in a
// SQLite file beside it. Each message reads it, so a change counts in every process from the next message on.
import { openDatabase, type Row } from '../kit/database.ts'
import type { Surroundings } from '../kit/example.ts'
import { withDefaults, type Settings, type SettingsChange } from './domain/settings.ts'

export interface SettingsTable {
  /** The settings of the lines, in their order. */
  of(lines: readonly string[]): Promise<readonly Settings[]>
  /** Changes some settings of a line, and returns all of them. */
  change(line: string, change: SettingsChange): Promise<Settings>
}

const TABLES = 'create table if not exists assistant_settings (line text primary key, changed text not null)'
/** Merges two JSON objects. */
const MERGED = {
  sqlite: 'json_patch(kept.changed, excluded.changed)',
  postgres: '(kept.changed::jsonb || excluded.changed::jsonb)::text',
} as const

export function settingsTable({ store, watch }: Pick<Surroundings, 'store' | 'watch'>): SettingsTable {
  const database = watch(openDatabase(store, { name: 'assistant', tables: TABLES }))
  // One statement, so that of two changes at the same time none is lost.
  const save = `insert into assistant_settings as kept (line, changed) values (?, ?)
    on conflict (line) do update set changed = ${MERGED[database.kind]} returning line, changed`
  return {
    async of(lines) {
      const names = [...new Set(lines)]
      const marks = names.map(() => '?').join()
      const rows = await database.rows(`select line, changed from assistant_settings where line in (${marks})`, names)
      const changed = new Map(rows.map((row) => [row['line'], toChange(row)]))
      return lines.map((line) => withDefaults(line, changed.get(line) ?? {}))
    },
    async change(line, change) {
      const [row] = await database.rows(save, [line, JSON.stringify(change)])
      return withDefaults(line, toChange(row))
    },
  }
}

function toChange(row: Row | undefined): SettingsChange {
  return row === undefined ? {} : (JSON.parse(String(row['changed'])) as SettingsChange)
}
