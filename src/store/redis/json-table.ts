// `jsonTable` is a table whose rows are stored as JSON.
import type { TableSpec } from './table-view.ts'

export function jsonTable<T>(name: string, texts: (row: T, key: string) => readonly string[]): TableSpec<T> {
  return { name, encode: (row) => JSON.stringify(row), decode: (text) => JSON.parse(text) as T, texts }
}
