// `VersionsTable` keeps the known versions, in a schema of its own beside the store. A change and its event are one transaction.
import type { PoolClient } from 'pg'
import type { Surroundings } from '../../kit/example.ts'
import { OwnSchema } from '../../kit/own-schema.ts'
import type { Change, Component, KnownVersion, News, Version } from '../domain/versions.ts'

export type Tx = Pick<PoolClient, 'query'>

const NEW = `
  insert into versions (component, version, details, deprecated)
  select component, version, details, deprecated
  from jsonb_to_recordset($1) as changed (component text, version text, details jsonb, deprecated text)
  on conflict do nothing
  returning component, version`

// Another writer may have made the same change meanwhile: then there is no news.
const CHANGED = `
  update versions set details = changed.details, deprecated = changed.deprecated
  from jsonb_to_recordset($1) as changed (component text, version text, details jsonb, deprecated text)
  where (versions.component, versions.version) = (changed.component, changed.version)
    and (versions.details, versions.deprecated) is distinct from (changed.details, changed.deprecated)
  returning versions.component, versions.version`

const STATEMENTS: Readonly<Record<News, string>> = {
  NEW_VERSION: NEW,
  VERSION_UPDATED: CHANGED,
  VERSION_DEPRECATED: CHANGED,
}

const TABLES = `
  create table if not exists versions (
    component text not null,
    version text not null,
    details jsonb not null,
    deprecated text,
    discovered_at timestamptz not null default now(),
    primary key (component, version)
  )`

/** The name of the schema. */
export const SCHEMA = 'neoforge_meta'

export class VersionsTable {
  readonly #schema: OwnSchema
  readonly #watch: Surroundings['watch']

  constructor({ store, watch }: Pick<Surroundings, 'store' | 'watch'>) {
    this.#schema = watch(new OwnSchema(store, SCHEMA, TABLES))
    this.#watch = watch
  }

  /** Runs `body` in one transaction. Whatever `body` publishes with `tx` is published if and only if it commits. */
  async transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    const tx = this.#watch(await this.#schema.connect())
    try {
      await tx.query('begin')
      const result = await body(tx)
      await tx.query('commit')
      tx.release()
      return result
    } catch (error) {
      // A connection in the middle of a transaction is not used again, and its transaction is rolled back.
      tx.release(true)
      throw error
    }
  }
}

/** `readVersions` returns the known versions, oldest first. */
export async function readVersions(tx: Tx, component: Component): Promise<readonly KnownVersion[]> {
  const sql =
    'select version, details, deprecated from versions where component = $1 order by discovered_at, version collate "C"'
  const { rows } = await tx.query<{ version: string; details: Version; deprecated: string | null }>(sql, [component])
  return rows.map(({ version, details, deprecated }) => ({ ...details, component, version, deprecated }))
}

/** `saveChanges` returns the changes that are really some, in their order. */
export async function saveChanges(tx: Tx, changes: readonly Change[]): Promise<readonly Change[]> {
  const saved = new Set<string>()
  for (const [news, some] of Map.groupBy(changes, (change) => change.news)) {
    const rows = some.map(({ version: { component, version, deprecated, ...details } }) => {
      return { component, version, details, deprecated }
    })
    const done = await tx.query<{ component: string; version: string }>(STATEMENTS[news], [JSON.stringify(rows)])
    for (const { component, version } of done.rows) saved.add(`${component}/${version}`)
  }
  return changes.filter(({ version: { component, version } }) => saved.has(`${component}/${version}`))
}
