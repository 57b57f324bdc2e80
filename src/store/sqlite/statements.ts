// `Statements` caches prepared statements by their text, and returns rows as arrays: most of a call's time is spent
// between JavaScript and SQLite.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { NEVER, type Millis } from '../../clock.ts'
import { SluiceError, type ErrorCode } from '../../errors.ts'
import type { PlacementRow } from '../core/tables.ts'
import type { CellReader, SqlCell } from '../sql/rows.ts'

export type Cell = string | number | null | Uint8Array
export type Row = readonly Cell[]

/** The number of batched rows that go into one statement. */
const ROWS_PER_STATEMENT = 20

function repeatList(what: string, times: number): string {
  return `${`${what}, `.repeat(times - 1)}${what}`
}

interface BatchedRows {
  /** The number of values in a row. */
  readonly width: number
  readonly values: SQLInputValue[]
}

export class Statements {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()
  /** A new map each time: a cleared one keeps its contents until the whole heap is collected (churn-map.ts). */
  #batched = new Map<string, BatchedRows>()

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.flush()
    return this.#statement(sql).get(...values) as unknown as Row | undefined
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    this.flush()
    return this.#statement(sql).all(...values) as unknown as readonly Row[]
  }

  /** `run` returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number {
    this.flush()
    return Number(this.#statement(sql).run(...values).changes)
  }

  /** `runUnordered` runs at once and does not write the batched rows first. Use it only for rows that no batched
      statement touches. */
  runUnordered(sql: string, ...values: SQLInputValue[]): void {
    // `get` does not count the changed rows; counting costs as much as the statement.
    this.#statement(sql).get(...values)
  }

  /** `insert` returns false if a row with the same unique column exists. */
  insert(sql: string, ...values: SQLInputValue[]): boolean {
    this.flush()
    try {
      this.#statement(sql).get(...values)
      return true
    } catch (error) {
      if (isUniqueViolation(error)) return false
      throw error
    }
  }

  /** `runBatched` queues an insert without `values`, or a delete without its list. The queued rows run together
      before any other statement. */
  runBatched(sql: string, values: SQLInputValue[]): void {
    const known = this.#batched.get(sql)
    if (known === undefined) this.#batched.set(sql, { width: values.length, values: [...values] })
    else known.values.push(...values)
  }

  flush(): void {
    if (this.#batched.size === 0) return
    for (const [sql, rows] of this.#batched) {
      if (sql.startsWith('delete')) this.#deleteAll(sql, rows)
      else this.#insertAll(sql, rows)
    }
    this.#batched = new Map()
  }

  /** `discardBatched` drops the queued rows after a rollback. */
  discardBatched(): void {
    this.#batched = new Map()
  }

  #deleteAll(sql: string, { values }: BatchedRows): void {
    this.#inSteps(values, ROWS_PER_STATEMENT, `${sql} in (${repeatList('?', ROWS_PER_STATEMENT)})`, `${sql} = ?`)
  }

  #insertAll(sql: string, { width, values }: BatchedRows): void {
    const row = `(${repeatList('?', width)})`
    this.#inSteps(
      values,
      ROWS_PER_STATEMENT * width,
      `${sql} values ${repeatList(row, ROWS_PER_STATEMENT)}`,
      `${sql} values ${row}`,
    )
  }

  /** `#inSteps` uses two statements for any number of rows: one for full steps, one for the rest. */
  #inSteps(values: readonly SQLInputValue[], step: number, many: string, one: string): void {
    let from = 0
    for (; from + step <= values.length; from += step) this.#statement(many).get(...values.slice(from, from + step))
    for (const width = step / ROWS_PER_STATEMENT; from < values.length; from += width) {
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

function isUniqueViolation(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0
  return code === SQLITE_CONSTRAINT_UNIQUE || code === SQLITE_CONSTRAINT_PRIMARYKEY
}

export function text(cell: SqlCell | undefined): string {
  return cell as string
}

export function number(cell: SqlCell | undefined): number {
  return cell as number
}

export function bytes(cell: SqlCell | undefined): Uint8Array {
  return cell as Uint8Array
}

/** `sqliteCells` reads lists that are stored as texts: numbers and lane ids joined by commas, placements as JSON. */
export const sqliteCells: CellReader = {
  text,
  number,
  bytes,
  key: text,
  texts: splitList,
  numbers: (cell) => splitList(cell).map(Number),
  placements: (cell) => JSON.parse(text(cell)) as readonly PlacementRow[],
}

function splitList(cell: SqlCell | undefined): readonly string[] {
  return cell === '' ? [] : text(cell).split(',')
}

/** A NULL deadline means never. */
export function millisOrNever(cell: Cell | undefined): Millis {
  return (cell as number | null) ?? NEVER
}

export function millisOrNull(at: Millis): Millis | null {
  return at === NEVER ? null : at
}

const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26
/** SQLite returns this code when the disk is full and the index of the log cannot grow. */
const SQLITE_IOERR_SHMSIZE = SQLITE_IOERR | (19 << 8)

const CODES: Readonly<Record<number, ErrorCode>> = {
  [SQLITE_BUSY]: 'STORE_IN_USE',
  [SQLITE_READONLY]: 'STORE_UNWRITABLE',
  [SQLITE_IOERR]: 'STORE_FAILED',
  [SQLITE_CORRUPT]: 'STORE_DAMAGED',
  [SQLITE_FULL]: 'STORE_FULL',
  [SQLITE_CANTOPEN]: 'STORE_UNWRITABLE',
  [SQLITE_NOTADB]: 'STORE_NOT_A_DATABASE',
  [SQLITE_IOERR_SHMSIZE]: 'STORE_FULL',
}

/** `toSluiceError` maps errors of SQLite to the error codes of this package. */
export function toSluiceError(error: unknown, file: string): SluiceError {
  if (error instanceof SluiceError) return error
  const errcode = typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0
  // The low byte of an extended code is the primary code.
  const code = CODES[errcode] ?? CODES[errcode & 0xff] ?? 'STORE_FAILED'
  const message = error instanceof Error ? error.message : String(error)
  return new SluiceError(code, `SQLite failed on ${file}: ${message}.`, error)
}
