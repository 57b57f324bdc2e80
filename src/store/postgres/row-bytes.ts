// `encodeRows` encodes rows as an array of a composite type in the server's binary format. As one text array per column, the
// server needs twice as long to read the columns and combine them again.
import type { ColumnType, ColumnTypes, RowValues } from './columns.ts'
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
/** User-defined types have another OID in each database. The server accepts 0 for them. */
const UNSPECIFIED_OID = 0
const PAGE = 65_536
/** A page that an unusually large row has grown beyond this size is released. */
const MAX_PAGE_KEPT = 4_194_304
/** For shorter texts, a loop in JavaScript is faster than a call of `Buffer.write`. */
const SHORT = 64
const HIGH = 2 ** 32

let page = Buffer.allocUnsafeSlow(PAGE)
let end = 0

export function encodeRows(rows: readonly RowValues[], columns: ColumnTypes): Buffer {
  const fields = Object.entries(columns).map(([name, type]) => ({ name, type, oid: OIDS[type] }))
  end = 0
  beginArray(rows.length, UNSPECIFIED_OID)
  for (const row of rows) {
    const start = beginValue()
    writeInt32(fields.length)
    for (const { name, type, oid } of fields) {
      writeInt32(oid)
      writeValue(type, row[name] ?? null)
    }
    endValue(start)
  }
  const made = Buffer.from(page.subarray(0, end))
  if (page.length > MAX_PAGE_KEPT) page = Buffer.allocUnsafeSlow(PAGE)
  return made
}

/** `encodeArray` encodes one column. */
export function encodeArray(
  type: 'text' | 'bigint' | 'boolean',
  values: readonly (string | number | boolean)[],
): Buffer {
  end = 0
  beginArray(values.length, OIDS[type])
  for (const value of values) writeValue(type, value)
  return Buffer.from(page.subarray(0, end))
}

function writeValue(type: ColumnType, value: Value): void {
  if (value === null) return writeInt32(-1)
  switch (type) {
    case 'bigint':
      if (!Number.isSafeInteger(value)) throw invalidValue(type, value)
      writeInt32(8)
      return writeInt64(value as number)
    case 'int':
      if (value !== ((value as number) | 0)) throw invalidValue(type, value)
      writeInt32(4)
      return writeInt32(value)
    case 'smallint':
      if (value !== ((value as number) << 16) >> 16) throw invalidValue(type, value)
      writeInt32(2)
      return writeInt16(value)
    case 'boolean':
      writeInt32(1)
      return writeInt8(value === true ? 1 : 0)
    case 'text':
      return writeText(value as string)
    case 'bytea':
      if (!(value instanceof Uint8Array)) throw invalidValue(type, value)
      return writeBytes(value)
    case 'text[]':
      return writeArray('text', value as readonly string[])
    case 'bigint[]':
      return writeArray('bigint', value as readonly number[])
  }
}

function invalidValue(type: ColumnType, value: Value): RangeError {
  return new RangeError(`${String(value)} is not a ${type}`)
}

function writeArray(type: 'text' | 'bigint', values: readonly (string | number)[]): void {
  const start = beginValue()
  beginArray(values.length, OIDS[type])
  for (const value of values) writeValue(type, value)
  endValue(start)
}

/**
 * The header of an array: the number of dimensions, whether it contains nulls, the element type, then length and lower bound of
 * its one dimension.
 */
function beginArray(length: number, oid: number): void {
  writeInt32(length === 0 ? 0 : 1)
  writeInt32(0)
  writeInt32(oid)
  if (length === 0) return
  writeInt32(length)
  writeInt32(1)
}

/** `beginValue` reserves the length that precedes each value; `endValue` fills it in. */
function beginValue(): number {
  writeInt32(0)
  return end
}

function endValue(start: number): void {
  page.writeInt32BE(end - start, start - 4)
}

function writeText(value: string): void {
  ensureCapacity(4 + 3 * value.length)
  const start = end + 4
  const length = (value.length <= SHORT ? tryWriteAscii(value, start) : undefined) ?? page.write(value, start)
  page.writeInt32BE(length, end)
  end = start + length
}

/** `tryWriteAscii` returns undefined if the text is not ASCII. */
function tryWriteAscii(value: string, start: number): number | undefined {
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at)
    if (code > 127) return undefined
    page[start + at] = code
  }
  return value.length
}

function writeBytes(value: Uint8Array): void {
  writeInt32(value.length)
  ensureCapacity(value.length)
  page.set(value, end)
  end += value.length
}

function writeInt64(value: number): void {
  writeInt32(Math.floor(value / HIGH))
  writeInt32(value % HIGH)
}

function writeInt32(value: number): void {
  ensureCapacity(4)
  const bits = value | 0
  page[end++] = bits >>> 24
  page[end++] = bits >>> 16
  page[end++] = bits >>> 8
  page[end++] = bits
}

function writeInt16(value: number): void {
  ensureCapacity(2)
  page[end++] = value >>> 8
  page[end++] = value
}

function writeInt8(value: number): void {
  ensureCapacity(1)
  page[end++] = value
}

function ensureCapacity(more: number): void {
  if (end + more <= page.length) return
  const grown = Buffer.allocUnsafeSlow(Math.max(2 * page.length, end + more))
  page.copy(grown, 0, 0, end)
  page = grown
}
