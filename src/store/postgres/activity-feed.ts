// `ActivityFeed` shows a watcher in one process what happens in all processes. While any watcher exists, each process writes
// its changes to a table a few times a second, and the watchers read them. Without watchers it costs nothing. Notifications are
// not used, because any role may listen to them.
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { NewFeedEntry } from '../core/commit-context.ts'
import type { Notifications } from './notifications.ts'

export interface ActivityFeedDependencies {
  readonly pool: Pick<Pool, 'query'>
  readonly hints: Pick<Notifications, 'send' | 'onWatched'>
  readonly clock: Clock
}

type SharedEntry = NewFeedEntry | 'missed'

const ADD = 'insert into shown (process, changes) values ($1, $2)'
const NEW = 'select n, changes from shown where n > $1 and n <> all($2) and process <> $3 order by n limit $4'
const NEWEST = 'select coalesce(max(n), 0) from shown'
const FORGET = `delete from shown where at < clock_timestamp() - interval '1 minute'`

/** A watcher announces itself at this interval; each announcement holds for `WATCH_LIFETIME`. */
const WATCH_INTERVAL: Millis = 2_000
const WATCH_LIFETIME: Millis = 10_000
const WRITE_INTERVAL: Millis = 100
/**
 * The maximum number of changes in a row. Further changes are dropped and reported as `missed`: no person can follow that many.
 */
const MAX_ENTRIES_PER_ROW = 500
const MAX_ROWS_READ = 100
/** Rows with lower numbers may be committed later, so each read includes this many earlier numbers. */
const REREAD_ROWS = 100
const CLEANUP_INTERVAL: Millis = 20_000

export class ActivityFeed {
  readonly #dependencies: ActivityFeedDependencies
  readonly #processId = randomUUID()
  #watchedUntil: Millis = -Infinity
  #announcedAt: Millis = -Infinity
  #cleanedAt: Millis = -Infinity
  #isClosed = false
  #waiting: SharedEntry[] = []
  #writing: (() => void) | undefined
  #reading: Promise<unknown> = Promise.resolve()
  /** The rows that were read last; undefined if this process has no watcher. */
  #cursor: { readonly last: number; readonly ns: readonly number[] } | undefined

  constructor(dependencies: ActivityFeedDependencies) {
    this.#dependencies = dependencies
    dependencies.hints.onWatched(() => {
      this.#watchedUntil = dependencies.clock.monotonic() + WATCH_LIFETIME
    })
  }

  publish(notes: readonly NewFeedEntry[]): void {
    const { clock } = this.#dependencies
    if (notes.length === 0 || clock.monotonic() >= this.#watchedUntil) return
    const room = Math.max(0, MAX_ENTRIES_PER_ROW - this.#waiting.length)
    this.#waiting.push(...notes.slice(0, room))
    if (notes.length > room && this.#waiting.at(-1) !== 'missed') this.#waiting.push('missed')
    this.#writeSoon()
  }

  /**
   * `readOthers` returns what other processes did since the last call. A caller that has not read for long starts anew and gets
   * `missed`.
   */
  readOthers(): Promise<readonly SharedEntry[]> {
    // Reads run one after the other: two concurrent reads would return the same rows.
    const seen = this.#reading.then(() => this.#readNew())
    this.#reading = seen.catch(() => {})
    return seen
  }

  async #readNew(): Promise<readonly SharedEntry[]> {
    const { pool, clock } = this.#dependencies
    const now = clock.monotonic()
    const isNew = this.#cursor === undefined || now - this.#announcedAt >= WATCH_LIFETIME
    if (now - this.#announcedAt >= WATCH_INTERVAL) {
      this.#announcedAt = now
      this.#dependencies.hints.send([{ kind: 'watched' }])
    }
    if (now - this.#cleanedAt >= CLEANUP_INTERVAL) {
      this.#cleanedAt = now
      await pool.query(FORGET)
    }
    if (isNew) {
      const last = await this.#readNewest()
      const again = this.#cursor !== undefined
      this.#cursor = { last, ns: Array.from({ length: REREAD_ROWS }, (_, n) => last - n) }
      return again ? ['missed'] : []
    }
    return this.#readRows()
  }

  close(): void {
    this.#isClosed = true
    this.#writing?.()
  }

  async #readRows(): Promise<readonly SharedEntry[]> {
    const { last, ns } = this.#cursor ?? { last: 0, ns: [] }
    const values = [last - REREAD_ROWS, ns, this.#processId, MAX_ROWS_READ]
    const { rows } = await this.#dependencies.pool.query<[string, string]>({
      text: NEW,
      values,
      rowMode: 'array',
    })
    // After a crash the unlogged table is empty, and its numbers may begin at 1 again. The table is also empty if all rows have
    // expired, and then the numbers continue.
    if (rows.length === 0 && (await this.#readNewest()) < last) {
      this.#cursor = { last: 0, ns: [] }
      return []
    }
    const read = [...ns, ...rows.map(([n]) => Number(n))]
    const newest = Math.max(last, ...read)
    this.#cursor = { last: newest, ns: read.filter((n) => n > newest - REREAD_ROWS) }
    return rows.flatMap(([, changes]) => JSON.parse(changes) as readonly SharedEntry[])
  }

  async #readNewest(): Promise<number> {
    const { rows } = await this.#dependencies.pool.query<[string]>({ text: NEWEST, rowMode: 'array' })
    return Number(rows[0]?.[0] ?? 0)
  }

  #writeSoon(): void {
    this.#writing ??= this.#dependencies.clock.after(WRITE_INTERVAL, () => void this.#write())
  }

  async #write(): Promise<void> {
    const changes = this.#waiting
    this.#waiting = []
    try {
      await this.#dependencies.pool.query(ADD, [this.#processId, JSON.stringify(changes)])
    } catch {
      // The feed is best-effort: no behaviour depends on it.
    }
    this.#writing = undefined
    if (this.#waiting.length > 0 && !this.#isClosed) this.#writeSoon()
  }
}
