// The least that storing in SQLite must do: one row of one table per request, and one sync for all requests of a moment. It has no
// identity, no lane and no index. Whatever Sluice takes beyond this time is its own cost.
import { fdatasync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { promisify } from 'node:util'

const synced = promisify(fdatasync)

interface Arrived {
  readonly id: string
  readonly request: Uint8Array
  readonly body: Uint8Array
}

export class BareTable {
  readonly #db: DatabaseSync
  readonly #insert: StatementSync
  readonly #log: number
  #underWay: Promise<void> | undefined
  #waiting: Arrived[] = []
  #next: Promise<void> | undefined

  constructor(file: string) {
    this.#db = new DatabaseSync(file)
    // As in Sluice's store: the log is written back after 64 MB, but here by this thread.
    this.#db.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = normal')
    this.#db.exec('pragma cache_size = -65536; pragma wal_autocheckpoint = 8192')
    this.#db.exec('create table arrived (n integer primary key, id text, request blob, body blob) strict')
    this.#insert = this.#db.prepare('insert into arrived (id, request, body) values (?, ?, ?)')
    this.#log = openSync(`${file}-wal`, 'r+')
  }

  /** Resolves when the rows are on the disk. One sync runs at a time; rows that arrive meanwhile share the next one. */
  insert(events: readonly Arrived[]): Promise<void> {
    for (const event of events) this.#waiting.push(event)
    return (this.#next ??= this.#after(this.#underWay))
  }

  async #after(before: Promise<void> | undefined): Promise<void> {
    await before
    await new Promise((resolve) => setImmediate(resolve))
    this.#underWay = this.#next
    this.#next = undefined
    const events = this.#waiting
    this.#waiting = []
    this.#db.exec('begin immediate')
    for (const { id, request, body } of events) this.#insert.get(id, request, body)
    this.#db.exec('commit')
    await synced(this.#log)
  }
}
