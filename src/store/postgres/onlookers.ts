// Who looks on in one process sees what happens in all: while somebody does, each process writes down what it did, a few times a
// second, and whoever looks on reads it. While nobody does it costs nothing. Not by messages, which any role may listen to.
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import type { Clock, Millis } from '../../clock.ts'
import type { Note } from '../rules/work.ts'
import type { Hints } from './hints.ts'

export interface OnlookersParts {
  readonly pool: Pick<Pool, 'query'>
  readonly hints: Pick<Hints, 'send' | 'onWatched'>
  readonly clock: Clock
}

type Shown = Note | 'missed'

const ADD = 'insert into shown (process, changes) values ($1, $2)'
const NEW = 'select n, changes from shown where n > $1 and n <> all($2) and process <> $3 order by n limit $4'
const NEWEST = 'select coalesce(max(n), 0) from shown'
const FORGET = `delete from shown where at < clock_timestamp() - interval '1 minute'`

/** It is said again while it is so, and holds for some time without. */
const SAID_EVERY: Millis = 2_000
const HOLDS: Millis = 10_000
const WRITTEN_EVERY: Millis = 100
/** So many changes go into a row; of more there are too many to look at. */
const MOST_IN_A_ROW = 500
const ROWS_READ = 100
/** Rows with lower numbers may be committed later: so many are looked at again. */
const LOOKED_BACK = 100
const FORGOTTEN_EVERY: Millis = 20_000

export class Onlookers {
  readonly #parts: OnlookersParts
  readonly #self = randomUUID()
  #watchedUntil: Millis = -Infinity
  #saidAt: Millis = -Infinity
  #forgotAt: Millis = -Infinity
  #isClosed = false
  #waiting: Shown[] = []
  #writing: (() => void) | undefined
  #looking: Promise<unknown> = Promise.resolve()
  /** The rows that were read last; undefined: nobody looks on here. */
  #read: { readonly last: number; readonly ns: readonly number[] } | undefined

  constructor(parts: OnlookersParts) {
    this.#parts = parts
    parts.hints.onWatched(() => {
      this.#watchedUntil = parts.clock.monotonic() + HOLDS
    })
  }

  show(notes: readonly Note[]): void {
    const { clock } = this.#parts
    if (notes.length === 0 || clock.monotonic() >= this.#watchedUntil) return
    const room = Math.max(0, MOST_IN_A_ROW - this.#waiting.length)
    this.#waiting.push(...notes.slice(0, room))
    if (notes.length > room && this.#waiting.at(-1) !== 'missed') this.#waiting.push('missed')
    this.#writeSoon()
  }

  /** What others did since it was last asked. Whoever has not asked for long begins anew, and is told that he missed some. */
  seen(): Promise<readonly Shown[]> {
    // One after the other: two at once would both have the same.
    const seen = this.#looking.then(() => this.#look())
    this.#looking = seen.catch(() => {})
    return seen
  }

  async #look(): Promise<readonly Shown[]> {
    const { pool, clock } = this.#parts
    const now = clock.monotonic()
    const isNew = this.#read === undefined || now - this.#saidAt >= HOLDS
    if (now - this.#saidAt >= SAID_EVERY) {
      this.#saidAt = now
      this.#parts.hints.send([{ kind: 'watched' }])
    }
    if (now - this.#forgotAt >= FORGOTTEN_EVERY) {
      this.#forgotAt = now
      await pool.query(FORGET)
    }
    if (isNew) {
      const last = await this.#newest()
      const again = this.#read !== undefined
      this.#read = { last, ns: Array.from({ length: LOOKED_BACK }, (_, n) => last - n) }
      return again ? ['missed'] : []
    }
    return this.#rows()
  }

  close(): void {
    this.#isClosed = true
    this.#writing?.()
  }

  async #rows(): Promise<readonly Shown[]> {
    const { last, ns } = this.#read ?? { last: 0, ns: [] }
    const asked = [last - LOOKED_BACK, ns, this.#self, ROWS_READ]
    const { rows } = await this.#parts.pool.query<[string, string]>({ text: NEW, values: asked, rowMode: 'array' })
    // A server that crashed has none of them any more, and counts from one again; or all were forgotten, and it goes on.
    if (rows.length === 0 && (await this.#newest()) < last) {
      this.#read = { last: 0, ns: [] }
      return []
    }
    const read = [...ns, ...rows.map(([n]) => Number(n))]
    const newest = Math.max(last, ...read)
    this.#read = { last: newest, ns: read.filter((n) => n > newest - LOOKED_BACK) }
    return rows.flatMap(([, changes]) => JSON.parse(changes) as readonly Shown[])
  }

  async #newest(): Promise<number> {
    const { rows } = await this.#parts.pool.query<[string]>({ text: NEWEST, rowMode: 'array' })
    return Number(rows[0]?.[0] ?? 0)
  }

  #writeSoon(): void {
    this.#writing ??= this.#parts.clock.after(WRITTEN_EVERY, () => void this.#write())
  }

  async #write(): Promise<void> {
    const changes = this.#waiting
    this.#waiting = []
    try {
      await this.#parts.pool.query(ADD, [this.#self, JSON.stringify(changes)])
    } catch {
      // Nothing depends on it.
    }
    this.#writing = undefined
    if (this.#waiting.length > 0 && !this.#isClosed) this.#writeSoon()
  }
}
