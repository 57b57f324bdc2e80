// Prepared statements by their text, and rows as arrays: most of a call's time is spent between here and SQLite.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { NEVER, type Millis } from '../../clock.ts'

export type Cell = string | number | null | Uint8Array
export type Row = readonly Cell[]

/** Rows that go into one statement when several of a kind are written behind. */
const TOGETHER = 20

export class Statements {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()
  readonly #behind = new Map<string, SQLInputValue[][]>()

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

  /** An insert without `values`, or a delete without its list: done with its like, before anything else is. */
  behind(sql: string, values: SQLInputValue[]): void {
    const rows = this.#behind.get(sql)
    if (rows === undefined) this.#behind.set(sql, [values])
    else rows.push(values)
  }

  catchUp(): void {
    if (this.#behind.size === 0) return
    for (const [sql, rows] of this.#behind) {
      if (sql.startsWith('delete')) this.#deleteAll(sql, rows)
      else this.#insertAll(sql, rows)
    }
    this.#behind.clear()
  }

  /** After a rollback there is nothing to catch up with. */
  forget(): void {
    this.#behind.clear()
  }

  #deleteAll(sql: string, rows: readonly SQLInputValue[][]): void {
    this.#statement(`${sql} in (select value from json_each(?))`).run(JSON.stringify(rows.flat()))
  }

  #insertAll(sql: string, rows: readonly SQLInputValue[][]): void {
    for (let from = 0; from < rows.length;) {
      const count = rows.length - from >= TOGETHER ? TOGETHER : 1
      const row = `(${Array.from(rows[from] ?? [], () => '?').join(', ')})`
      const statement = this.#statement(`${sql} values ${Array.from({ length: count }, () => row).join(', ')}`)
      statement.run(...rows.slice(from, from + count).flat())
      from += count
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
