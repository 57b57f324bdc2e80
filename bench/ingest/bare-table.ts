// What nobody who stores in SQLite can do without: a row of one table for each request, and one sync for all of a moment. No identity,
// no lane, no index: what is above the time of this is ours.
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
    // As the store of Sluice has it: written back after 64 MB, here by this thread.
    this.#db.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = normal')
    this.#db.exec('pragma cache_size = -65536; pragma wal_autocheckpoint = 8192')
    this.#db.exec('create table arrived (n integer primary key, id text, request blob, body blob) strict')
    this.#insert = this.#db.prepare('insert into arrived (id, request, body) values (?, ?, ?)')
    this.#log = openSync(`${file}-wal`, 'r+')
  }

  /** Resolves when they are on the disk. One sync is under way at a time; what comes meanwhile shares the next. */
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
