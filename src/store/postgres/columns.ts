// Rows go to the server by columns, each an array written out here: no driver and no JSON between, which cost as much as
// the rows themselves.
import type { Db } from './part.ts'
import type { Value } from './values.ts'

/** Names and types of columns, in their order. `text[]` goes as text and is read as an array there. */
export type Columns = Readonly<Record<string, string>>

export type WrittenRow = Readonly<Record<string, Value>>

export function insertInto(table: string, columns: Columns): string {
  return `insert into ${table} (${Object.keys(columns).join(', ')}) select ${read(columns)} from ${unnested(columns)}`
}

/** By the first of the columns. */
export function updateOf(table: string, columns: Columns): string {
  const [key = '', ...others] = Object.keys(columns)
  return `update ${table} t set ${others.map((name) => `${name} = ${valueOf(name, columns)}`).join(', ')} from ${unnested(columns)} where t.${key} = v.${key}`
}

/** The columns of rows that are called v. */
export function read(columns: Columns): string {
  return Object.keys(columns)
    .map((name) => valueOf(name, columns))
    .join(', ')
}

function valueOf(name: string, columns: Columns): string {
  return columns[name] === 'text[]' ? `v.${name}::text[]` : `v.${name}`
}

export function unnested(columns: Columns): string {
  const arrays = Object.values(columns).map((type, at) => `$${at + 1}::${type === 'text[]' ? 'text' : type}[]`)
  return `unnest(${arrays.join(', ')}) as v (${Object.keys(columns).join(', ')})`
}

export async function sendRows(db: Db, sql: string, columns: Columns, rows: readonly WrittenRow[]): Promise<void> {
  if (rows.length > 0) await db.rows(sql, arraysOf(rows, columns))
}

export function arraysOf(rows: readonly WrittenRow[], columns: Columns): readonly string[] {
  return Object.keys(columns).map((name) => arrayOf(rows, name))
}

/** As the server reads an array. */
function arrayOf(rows: readonly WrittenRow[], name: string): string {
  let made = '{'
  for (let at = 0; at < rows.length; at++) {
    if (at > 0) made += ','
    made += elementOf(rows[at]?.[name])
  }
  return `${made}}`
}

function elementOf(value: Value | undefined): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return quotedElement(value)
  if (typeof value === 'object')
    return quotedElement(`{${(value as readonly (string | number)[]).map(elementOf).join(',')}}`)
  return String(value)
}

function quotedElement(text: string): string {
  return NEEDS_ESCAPE.test(text) ? `"${text.replaceAll(ESCAPED, '\\$&')}"` : `"${text}"`
}

const NEEDS_ESCAPE = /["\\]/
const ESCAPED = /["\\]/g
