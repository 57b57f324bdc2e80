// The least that a durable queue in SQLite must do: it writes a lease before the work, deletes the row after it, and syncs once for
// all rows of a moment. Like Sluice, it leases nothing ahead of a free slot. It has no lanes, no order, no records and
// no retries.
import { fdatasync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'

const synced = promisify(fdatasync)
const LEASE = 30_000
/** At most this many ended posts share a commit. */
const GATHERED = 16

export class BareQueue {
  readonly #db: DatabaseSync
  readonly #log: number

  constructor(file: string) {
    this.#db = new DatabaseSync(file)
    this.#db.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = normal')
    this.#db.exec('pragma cache_size = -65536; pragma wal_autocheckpoint = 8192')
    this.#db.exec('create table jobs (n integer primary key, lease integer not null, data text not null) strict')
    this.#log = openSync(`${file}-wal`, 'r+')
  }

  fill(jobs: readonly string[]): void {
    const insert = this.#db.prepare('insert into jobs (lease, data) values (0, ?)')
    this.#db.exec('begin')
    for (const data of jobs) insert.run(data)
    this.#db.exec('commit')
  }

  /** Runs `atOnce` posts at the same time. Resolves when the last row is deleted from the disk. */
  async workedOff(atOnce: number, work: (n: number, data: string) => Promise<void>): Promise<void> {
    const claim = this.#db.prepare(
      'update jobs set lease = ? where n in (select n from jobs where n > ? order by n limit ?) returning n, data',
    )
    const remove = this.#db.prepare('delete from jobs where n in (select value from json_each(?))')
    let [running, claimed, more] = [0, 0, true]
    let ended: number[] = []
    let wake = Promise.withResolvers<void>()
    const run = async (n: number, data: string): Promise<void> => {
      await work(n, data)
      ended.push(n)
      wake.resolve()
    }
    for (;;) {
      this.#db.exec('begin immediate')
      if (ended.length > 0) remove.get(JSON.stringify(ended))
      running -= ended.length
      ended = []
      const free = atOnce - running
      const jobs =
        more && free > 0 ? (claim.all(Date.now() + LEASE, claimed, free) as { n: number; data: string }[]) : []
      this.#db.exec('commit')
      await synced(this.#log)
      running += jobs.length
      more &&= free === 0 || jobs.length > 0
      for (const { n, data } of jobs) {
        claimed = Math.max(claimed, n)
        void run(n, data)
      }
      if (running === 0) return
      const few = Math.min(running, GATHERED)
      while (ended.length < few) {
        wake = Promise.withResolvers()
        await wake.promise
      }
    }
  }
}
