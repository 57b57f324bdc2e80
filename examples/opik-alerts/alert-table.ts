// `AlertTable` keeps the alerts in a table of the app's own. Each batch of events reads it, so a change counts in every process at once.
import { openDatabase, type Database, type Row } from '../kit/database.ts'
import type { Surroundings } from '../kit/example.ts'
import type { Alert } from './domain/alert.ts'

const TABLES = `
  create table if not exists alerts (
    id text primary key,
    workspace text not null,
    created_at bigint not null,
    -- JSON: the other fields.
    alert text not null
  );
  create index if not exists alerts_workspace on alerts (workspace)`

export class AlertTable {
  readonly #database: Database

  constructor({ store, watch }: Pick<Surroundings, 'store' | 'watch'>) {
    this.#database = watch(openDatabase(store, { name: 'opik_alerts', tables: TABLES }))
  }

  async find(id: string): Promise<Alert | undefined> {
    const [row] = await this.#database.rows('select alert from alerts where id = ?', [id])
    return row === undefined ? undefined : toAlert(row)
  }

  /** The oldest first. */
  async ofWorkspace(workspace: string): Promise<readonly Alert[]> {
    const sql = 'select alert from alerts where workspace = ? order by created_at, id'
    return (await this.#database.rows(sql, [workspace])).map(toAlert)
  }

  async add(alert: Alert): Promise<void> {
    const { id, workspace, created_at } = alert
    const sql = 'insert into alerts (id, workspace, created_at, alert) values (?, ?, ?, ?)'
    await this.#database.rows(sql, [id, workspace, created_at, JSON.stringify(alert)])
  }

  /** Returns what was stored; undefined if there is no such alert. Two changes at the same time are both made. */
  async change(id: string, change: (alert: Alert) => Alert): Promise<Alert | undefined> {
    for (;;) {
      const [row] = await this.#database.rows('select alert from alerts where id = ?', [id])
      if (row === undefined) return undefined
      const changed = change(toAlert(row))
      const sql = 'update alerts set alert = ? where id = ? and alert = ? returning id'
      const written = await this.#database.rows(sql, [JSON.stringify(changed), id, String(row['alert'])])
      if (written.length > 0) return changed
    }
  }

  async remove(id: string): Promise<void> {
    await this.#database.rows('delete from alerts where id = ?', [id])
  }
}

function toAlert(row: Row): Alert {
  return JSON.parse(String(row['alert'])) as Alert
}
