// Builds statements that send rows as one array parameter of a composite type, and store them in the named columns.
import { hash } from 'node:crypto'
import type { Statement } from './row-cache.ts'
import { encodeRows } from './row-bytes.ts'
import type { Value } from './values.ts'

export type ColumnType = 'bigint' | 'int' | 'smallint' | 'boolean' | 'text' | 'bytea' | 'text[]' | 'bigint[]'

/** `ColumnTypes` holds the names and types of columns, in their order. */
export type ColumnTypes = Readonly<Record<string, ColumnType>>

export type RowValues = Readonly<Record<string, Value>>

/** `RowType` is a composite type of the schema. */
export interface RowType {
  readonly name: string
  readonly columns: ColumnTypes
}

/**
 * `defineRowType` derives the type's name from its columns. Two releases with different columns therefore use different types,
 * and their processes can run side by side.
 */
export function defineRowType(what: string, columns: ColumnTypes): RowType {
  return { name: `${what}_${hash('sha256', JSON.stringify(columns)).slice(0, 8)}`, columns }
}

/** `rows` is the alias of the unnested rows. */
export function unnestRows({ name }: RowType, rows: string): string {
  return `unnest($1::${name}[]) as ${rows}`
}

export function buildInsert(table: string, type: RowType): string {
  const columns = Object.keys(type.columns).join(', ')
  return `insert into ${table} (${columns}) select ${columns} from ${unnestRows(type, 'v')}`
}

/** `buildUpdate` matches rows by the first column of the type. */
export function buildUpdate(table: string, type: RowType): string {
  const [key = '', ...others] = Object.keys(type.columns)
  return `update ${table} t set ${others.map((name) => `${name} = v.${name}`).join(', ')} from ${unnestRows(type, 'v')} where t.${key} = v.${key}`
}

export function bindRows(sql: string, type: RowType, rows: readonly RowValues[]): readonly Statement[] {
  return rows.length === 0 ? [] : [[sql, [encodeRows(rows, type.columns)]]]
}
