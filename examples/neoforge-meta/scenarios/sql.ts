// SQL sessions beside the app, as a maintainer with `psql` has them.
import { readFileSync } from 'node:fs'
import { Client } from 'pg'
import { schemaNames } from '../../kit/own-schema.ts'
import type { Stage } from '../../kit/stage.ts'
import { SCHEMA } from '../data/versions-table.ts'
import type { World } from './world.ts'

const DEPRECATE = readFileSync(new URL('../sql/deprecate.sql', import.meta.url), 'utf8')

export interface Session {
  query(sql: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
  /** Runs sql/deprecate.sql, with its variables set. */
  deprecate(version: string, reason: string): Promise<unknown>
}

/** Opens a session for the time of `body`. A transaction that is still open then is rolled back. */
export async function withSession<T>(stage: Stage<World>, body: (session: Session) => Promise<T>): Promise<T> {
  const { client: options, own, store } = schemaNames(stage.store, SCHEMA)
  const client = stage.watch(new Client(options))
  await client.connect()
  const query: Session['query'] = (sql) => client.query<Readonly<Record<string, unknown>>>(sql)
  try {
    return await body({
      query,
      deprecate: (version, reason) => {
        const values: Readonly<Record<string, string>> = { component: 'NEOFORGE', version, reason }
        const sql = DEPRECATE.replaceAll(/:'(\w+)'/g, (_, name: string) => `'${values[name] ?? ''}'`)
        return query(sql.replaceAll(`${SCHEMA}.`, `${own}.`).replaceAll('sluice.', `${store}.`))
      },
    })
  } finally {
    await client.end()
  }
}
