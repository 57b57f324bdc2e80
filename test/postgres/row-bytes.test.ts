// Rows are sent in the server's binary format: the server reads exactly the values that were written.
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { connect, Connection, runScript } from '../../src/store/postgres/connections.ts'
import { unnestRows, defineRowType, type RowValues } from '../../src/store/postgres/columns.ts'
import { encodeRows } from '../../src/store/postgres/row-bytes.ts'
import { ensureRowTypes } from '../../src/store/postgres/row-types.ts'
import type { Row } from '../../src/store/postgres/values.ts'

const EVERY = defineRowType('every', {
  big: 'bigint',
  whole: 'int',
  small: 'smallint',
  yes: 'boolean',
  words: 'text',
  raw: 'bytea',
  names: 'text[]',
  numbers: 'bigint[]',
})

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }).map((made) => made.replaceAll('\0', '')),
  fc.string({ minLength: 60, maxLength: 70 }),
)
const big = fc.maxSafeInteger()
const values = {
  big,
  whole: fc.integer(),
  small: fc.integer({ min: -32_768, max: 32_767 }),
  yes: fc.boolean(),
  words: text,
  raw: fc.uint8Array({ maxLength: 300 }),
  names: fc.array(text, { maxLength: 4 }),
  numbers: fc.array(big, { maxLength: 4 }),
}
const row = fc.record(
  Object.fromEntries(Object.entries(values).map(([name, made]) => [name, fc.option<unknown>(made)])),
) as fc.Arbitrary<RowValues>

describe.each(inject('postgresServers'))('$name', ({ url, name }) => {
  const schema = `row_bytes_${process.pid}_${name.replaceAll(/\W/g, '').toLowerCase()}`
  const onlooker = new pg.Client({ connectionString: url })

  beforeAll(async () => {
    await onlooker.connect()
    await onlooker.query(`create schema ${schema}`)
  })
  afterAll(async () => {
    await onlooker.query(`drop schema if exists ${schema} cascade`)
    await onlooker.end()
  })

  it('the server reads the same values that were written', async () => {
    const pool = await connect({ url, schema, acceptLoss: true, size: 1 })
    const client = await pool.connect()
    const db = new Connection(client, false)
    await ensureRowTypes(db, (sql) => runScript(client, sql), [EVERY])
    const sql = `select ${Object.keys(EVERY.columns).join(', ')} from ${unnestRows(EVERY, 'v')}`
    const sent = (rows: readonly RowValues[]): Promise<readonly Row[]> =>
      db.query(sql, [encodeRows(rows, EVERY.columns)])
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
        expect((await sent(rows)).map((one) => one.map(plain))).toEqual(
          rows.map((one) => Object.keys(EVERY.columns).map((column) => plain(one[column]))),
        )
      }),
      { numRuns: 300 },
    )
    // More than fits the page, in one row and in all together.
    const long = [{ words: 'é'.repeat(3_000_000) }, ...Array.from({ length: 5_000 }, () => ({ words: 'x'.repeat(40) }))]
    expect((await sent(long)).map((one) => one[4])).toEqual(long.map(({ words }) => words))
    const [longest] = await sent([{ raw: Buffer.alloc(1_000_000, 7) }])
    expect(longest?.[5]).toEqual(Buffer.alloc(1_000_000, 7))
    for (const wrong of [Number.NaN, Infinity, 1.5, -0.5, 2 ** 53, 2 ** 64])
      expect(() => encodeRows([{ big: wrong }], EVERY.columns)).toThrow('is not a bigint')
    for (const wrong of [Number.NaN, 0.5, 2 ** 31, 2 ** 32 + 7])
      expect(() => encodeRows([{ whole: wrong }], EVERY.columns)).toThrow('is not a int')
    expect(() => encodeRows([{ small: 2 ** 15 }], EVERY.columns)).toThrow('is not a smallint')
    expect(() => encodeRows([{ raw: 'bytes' }], EVERY.columns)).toThrow('is not a bytea')
    // The row that failed leaves nothing in the next one.
    expect(await sent([{ big: 7 }])).toEqual([[7, null, null, null, null, null, null, null]])
    client.release()
    await pool.end()
  })
})

function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? [...value] : Array.isArray(value) ? value.map(String) : (value ?? null)
}
