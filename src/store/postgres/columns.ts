// Rows go to the server as an array of a type that it has for them, and into the columns that are named.
import { hash } from 'node:crypto'
import type { Statement } from './part.ts'
import { bytesOf } from './row-bytes.ts'
import type { Value } from './values.ts'

export type ColumnType = 'bigint' | 'int' | 'smallint' | 'boolean' | 'text' | 'bytea' | 'text[]' | 'bigint[]'

/** Names and types of columns, in their order. */
export type Columns = Readonly<Record<string, ColumnType>>

export type WrittenRow = Readonly<Record<string, Value>>

/** A composite type of the schema. */
export interface RowType {
  readonly name: string
  readonly columns: Columns
}

/** With other columns it is another type: processes of two releases at once have each their own. */
export function rowType(what: string, columns: Columns): RowType {
  return { name: `${what}_${hash('sha256', JSON.stringify(columns)).slice(0, 8)}`, columns }
}

/** `rows`: what they are called. */
export function rowsOf({ name }: RowType, rows: string): string {
  return `unnest($1::${name}[]) as ${rows}`
}

export function insertInto(table: string, type: RowType): string {
  const columns = Object.keys(type.columns).join(', ')
  return `insert into ${table} (${columns}) select ${columns} from ${rowsOf(type, 'v')}`
}

/** By the first of the columns. */
export function updateOf(table: string, type: RowType): string {
  const [key = '', ...others] = Object.keys(type.columns)
  return `update ${table} t set ${others.map((name) => `${name} = v.${name}`).join(', ')} from ${rowsOf(type, 'v')} where t.${key} = v.${key}`
}

export function withRows(sql: string, type: RowType, rows: readonly WrittenRow[]): readonly Statement[] {
  return rows.length === 0 ? [] : [[sql, [bytesOf(rows, type.columns)]]]
}
