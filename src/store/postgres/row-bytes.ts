// Rows as the server keeps them: an array of a composite type in its binary form. As texts, an array for each column, they
// cost the server twice as much to read and to put together again.
import type { ColumnType, Columns, WrittenRow } from './columns.ts'
import type { Value } from './values.ts'

const OIDS: Readonly<Record<ColumnType, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  int: 23,
  text: 25,
  'text[]': 1009,
  'bigint[]': 1016,
}
/** Types that are not the server's own have another number in each database: it does not insist on it. */
const AS_THE_STATEMENT_SAYS = 0
const PAGE = 65_536
/** What a row of unusual size made it grow to is not kept. */
const PAGE_KEPT = 4_194_304
/** Shorter texts are written sooner than they are handed over. */
const SHORT = 64
const HIGH = 2 ** 32

let page = Buffer.allocUnsafeSlow(PAGE)
let end = 0

export function bytesOf(rows: readonly WrittenRow[], columns: Columns): Buffer {
  const fields = Object.entries(columns).map(([name, type]) => ({ name, type, oid: OIDS[type] }))
  end = 0
  beginArray(rows.length, AS_THE_STATEMENT_SAYS)
  for (const row of rows) {
    const start = beginValue()
    int32(fields.length)
    for (const { name, type, oid } of fields) {
      int32(oid)
      put(type, row[name] ?? null)
    }
    endValue(start)
  }
  const made = Buffer.from(page.subarray(0, end))
  if (page.length > PAGE_KEPT) page = Buffer.allocUnsafeSlow(PAGE)
  return made
}

function put(type: ColumnType, value: Value): void {
  if (value === null) return int32(-1)
  switch (type) {
    case 'bigint':
      if (!Number.isSafeInteger(value)) throw noSuch(type, value)
      int32(8)
      return int64(value as number)
    case 'int':
      if (value !== ((value as number) | 0)) throw noSuch(type, value)
      int32(4)
      return int32(value)
    case 'smallint':
      if (value !== ((value as number) << 16) >> 16) throw noSuch(type, value)
      int32(2)
      return int16(value)
    case 'boolean':
      int32(1)
      return int8(value === true ? 1 : 0)
    case 'text':
      return text(value as string)
    case 'bytea':
      if (!(value instanceof Uint8Array)) throw noSuch(type, value)
      return bytes(value)
    case 'text[]':
      return array('text', value as readonly string[])
    case 'bigint[]':
      return array('bigint', value as readonly number[])
  }
}

function noSuch(type: ColumnType, value: Value): RangeError {
  return new RangeError(`${String(value)} is no ${type}`)
}

function array(type: 'text' | 'bigint', values: readonly (string | number)[]): void {
  const start = beginValue()
  beginArray(values.length, OIDS[type])
  for (const value of values) put(type, value)
  endValue(start)
}

/** Its dimensions, whether anything in it may be null, what it is of; of its one dimension the length and the first number. */
function beginArray(length: number, oid: number): void {
  int32(length === 0 ? 0 : 1)
  int32(0)
  int32(oid)
  if (length === 0) return
  int32(length)
  int32(1)
}

/** Before each value goes how long it is. */
function beginValue(): number {
  int32(0)
  return end
}

function endValue(start: number): void {
  page.writeInt32BE(end - start, start - 4)
}

function text(value: string): void {
  reserve(4 + 3 * value.length)
  const start = end + 4
  const length = (value.length <= SHORT ? ascii(value, start) : undefined) ?? page.write(value, start)
  page.writeInt32BE(length, end)
  end = start + length
}

/** Undefined where it is not plain. */
function ascii(value: string, start: number): number | undefined {
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at)
    if (code > 127) return undefined
    page[start + at] = code
  }
  return value.length
}

function bytes(value: Uint8Array): void {
  int32(value.length)
  reserve(value.length)
  page.set(value, end)
  end += value.length
}

function int64(value: number): void {
  int32(Math.floor(value / HIGH))
  int32(value % HIGH)
}

function int32(value: number): void {
  reserve(4)
  const bits = value | 0
  page[end++] = bits >>> 24
  page[end++] = bits >>> 16
  page[end++] = bits >>> 8
  page[end++] = bits
}

function int16(value: number): void {
  reserve(2)
  page[end++] = value >>> 8
  page[end++] = value
}

function int8(value: number): void {
  reserve(1)
  page[end++] = value
}

function reserve(more: number): void {
  if (end + more <= page.length) return
  const grown = Buffer.allocUnsafeSlow(Math.max(2 * page.length, end + more))
  page.copy(grown, 0, 0, end)
  page = grown
}
