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
const SAVE = `insert into assistant_settings (line, changed) values (?, ?)
  on conflict (line) do update set changed = excluded.changed`

export function settingsTable({ store, watch }: Pick<Surroundings, 'store' | 'watch'>): SettingsTable {
  const database = watch(openDatabase(store, { name: 'assistant', tables: TABLES }))
  const read = async (lines: readonly string[]): Promise<ReadonlyMap<string, SettingsChange>> => {
    const names = [...new Set(lines)]
    const marks = names.map(() => '?').join()
    const rows = await database.rows(`select line, changed from assistant_settings where line in (${marks})`, names)
    return new Map(rows.map(toChange))
  }
  return {
    async of(lines) {
      const changed = await read(lines)
      return lines.map((line) => withDefaults(line, changed.get(line) ?? {}))
    },
    async change(line, change) {
      const changed = { ...(await read([line])).get(line), ...change }
      await database.rows(SAVE, [line, JSON.stringify(changed)])
      return withDefaults(line, changed)
    },
  }
}

function toChange(row: Row): readonly [line: string, change: SettingsChange] {
  return [String(row['line']), JSON.parse(String(row['changed'])) as SettingsChange]
}
