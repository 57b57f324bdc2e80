// Reads every table of a schema by SQL alone.
import type pg from 'pg'

export interface EventRow {
  readonly seq: number
  readonly id: string
  readonly lanes: readonly string[]
  readonly tenant: string
  readonly purged_hash: string
  readonly doomed: boolean
  readonly body: string
  readonly request: string
}

export interface RunRow {
  readonly n: number
  readonly parent: string
  readonly lane: string
  readonly flow: string
  readonly kind: string
  readonly reason: string
  readonly lapses: number
  readonly events: readonly number[]
}

export interface DeadLetterRow {
  readonly id: string
  readonly parent: string
  readonly lane: string
  readonly flow: string
  readonly state: string
  readonly reason: string
  readonly lapses: number
  readonly blocks: boolean
  /** pos, event and size of each placement. */
  readonly places: readonly number[]
}

/** The typed tables by name; of the others only the presence of rows matters. */
export interface Tables extends Readonly<Record<string, readonly unknown[]>> {
  readonly events: readonly EventRow[]
  readonly runs: readonly RunRow[]
  readonly deadLetters: readonly DeadLetterRow[]
  readonly receipts: readonly { readonly event: number }[]
  readonly stored_bytes: readonly { readonly bytes: number }[]
  readonly meta: readonly { readonly name: string }[]
}

/** Reads the rows as JSON, so numbers stay numbers and lists stay lists. */
export async function readAll(client: pg.Client, schema: string): Promise<Tables> {
  const named = 'select tablename from pg_tables where schemaname = $1'
  const names = await client.query<{ tablename: string }>(named, [schema])
  const tables: Record<string, readonly unknown[]> = {}
  for (const { tablename } of names.rows) {
    const sql = `select row_to_json(t) as row from "${schema}"."${tablename}" t`
    const { rows } = await client.query<{ row: unknown }>(sql)
    tables[tablename] = rows.map(({ row }) => row)
  }
  const { letters = [], ...others } = tables
  return { ...others, deadLetters: letters } as unknown as Tables
}

/** Decodes a column of bytes. */
export function bytesIn(column: string): number {
  return (column.length - '\\x'.length) / 2
}

/** The placements of a dead letter. */
export function eventsOf({ places }: DeadLetterRow): readonly number[] {
  return places.filter((_, at) => at % 3 === 1)
}
