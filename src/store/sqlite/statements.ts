// Prepared statements by their text, and rows as arrays: most of a call's time is spent between here and SQLite.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { NEVER, type Millis } from '../../clock.ts'

export type Cell = string | number | null | Uint8Array
export type Row = readonly Cell[]

/** Rows that go into one statement when several of a kind are written behind. */
const TOGETHER = 20

function listOf(what: string, times: number): string {
  return `${`${what}, `.repeat(times - 1)}${what}`
}

interface Behind {
  /** How many values make a row. */
  readonly width: number
  readonly values: SQLInputValue[]
}

export class Statements {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()
  /** A new one each time: one that is emptied keeps what was in it until the whole heap is collected (busy-map.ts). */
  #behind = new Map<string, Behind>()

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.catchUp()
    return this.#statement(sql).get(...values) as unknown as Row | undefined
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    this.catchUp()
    return this.#statement(sql).all(...values) as unknown as readonly Row[]
  }

  /** How many rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    this.catchUp()
    return Number(this.#statement(sql).run(...values).changes)
  }

  /** At once, and without what is written behind: for rows that this is not about, so that it may wait for more of its like. */
  set(sql: string, ...values: SQLInputValue[]): void {
    // Does not count what changed, which costs as much.
    this.#statement(sql).get(...values)
  }

  /** False if a row with one of its unique columns is there already. */
  insert(sql: string, ...values: SQLInputValue[]): boolean {
    this.catchUp()
    try {
      this.#statement(sql).get(...values)
      return true
    } catch (error) {
      if (isTaken(error)) return false
      throw error
    }
  }

  /** An insert without `values`, or a delete without its list: done with its like, before anything else is. */
  behind(sql: string, values: SQLInputValue[]): void {
    const known = this.#behind.get(sql)
    if (known === undefined) this.#behind.set(sql, { width: values.length, values: [...values] })
    else known.values.push(...values)
  }

  catchUp(): void {
    if (this.#behind.size === 0) return
    for (const [sql, rows] of this.#behind) {
      if (sql.startsWith('delete')) this.#deleteAll(sql, rows)
      else this.#insertAll(sql, rows)
    }
    this.#behind = new Map()
  }

  /** After a rollback there is nothing to catch up with. */
  forget(): void {
    this.#behind = new Map()
  }

  #deleteAll(sql: string, { values }: Behind): void {
    this.#inSteps(values, TOGETHER, `${sql} in (${listOf('?', TOGETHER)})`, `${sql} = ?`)
  }

  #insertAll(sql: string, { width, values }: Behind): void {
    const row = `(${listOf('?', width)})`
    this.#inSteps(values, TOGETHER * width, `${sql} values ${listOf(row, TOGETHER)}`, `${sql} values ${row}`)
  }

  /** Many at a time, then the rest one by one: two statements, whatever their number. */
  #inSteps(values: readonly SQLInputValue[], step: number, many: string, one: string): void {
    let from = 0
    for (; from + step <= values.length; from += step) this.#statement(many).get(...values.slice(from, from + step))
    for (const width = step / TOGETHER; from < values.length; from += width) {
      this.#statement(one).get(...values.slice(from, from + width))
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#db.prepare(sql)
      statement.setReturnArrays(true)
      this.#prepared.set(sql, statement)
    }
    return statement
  }
}

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_CONSTRAINT_UNIQUE = 2067

function isTaken(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0
  return code === SQLITE_CONSTRAINT_UNIQUE || code === SQLITE_CONSTRAINT_PRIMARYKEY
}

export function text(cell: Cell | undefined): string {
  return cell as string
}

export function number(cell: Cell | undefined): number {
  return cell as number
}

export function bytes(cell: Cell | undefined): Uint8Array {
  return cell as Uint8Array
}

/** NULL in the place of a moment means never. */
export function moment(cell: Cell | undefined): Millis {
  return (cell as number | null) ?? NEVER
}

export function orNull(at: Millis): Millis | null {
  return at === NEVER ? null : at
}
