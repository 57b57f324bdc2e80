// `HealthRecords` keeps connections and metrics. Every change is one transaction that may be repeated.
import { dedupeHash, type Mapped, type Provider } from '../domain/metric.ts'
import { parsePermissions } from '../domain/permissions.ts'
import type { Database, Row, Statement } from '../../kit/database.ts'
import type { Vault } from './vault.ts'

export interface Tokens {
  readonly access: string
  readonly refresh: string
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

export interface Connection {
  readonly provider: Provider
  readonly externalId: string
  readonly profileId: string
  readonly isConnected: boolean
  readonly tokens: Tokens | undefined
  readonly metadata: Readonly<Record<string, unknown>>
  readonly permissions: readonly string[] | undefined
  readonly createdAt: number
  readonly connectedAt: number
  readonly disconnectedAt: number | undefined
}

/** One version of an item, as an event brought it. */
export interface ItemVersion {
  readonly connection: Connection
  readonly item: string
  readonly type: string
  /** When it arrived: a later version replaces an earlier one. */
  readonly version: number
  readonly event: string
  readonly raw: string
}

export class HealthRecords {
  readonly database: Database
  readonly #vault: Vault

  constructor(database: Database, vault: Vault) {
    this.database = database
    this.#vault = vault
  }

  async find(provider: Provider, externalId: string | undefined): Promise<Connection | undefined> {
    const sql = 'select * from wt_health_connections where provider = ? and external_id = ?'
    const [row] = await this.database.rows(sql, [provider, externalId ?? ''])
    return row === undefined ? undefined : this.#toConnection(row)
  }

  async connectionsOf(profileId: string): Promise<readonly Connection[]> {
    const rows = await this.database.rows('select * from wt_health_connections where profile_id = ?', [profileId])
    return rows.map((row) => this.#toConnection(row))
  }

  /**
   * A person who comes back is found by the provider's id, and keeps the profile. Returns when the person was connected for the first
   * time, and when the latest connection ended.
   */
  async connect(
    made: Pick<Connection, 'provider' | 'externalId' | 'profileId' | 'tokens' | 'metadata'>,
    at: number,
  ): Promise<Pick<Connection, 'createdAt' | 'disconnectedAt'>> {
    const { provider, externalId, profileId, tokens, metadata } = made
    const encrypted = tokens === undefined ? null : this.#encryptTokens(provider, externalId, tokens)
    const [row] = await this.database.rows(
      `insert into wt_health_connections (provider, external_id, profile_id, is_connected, tokens, connection_metadata,
         created_at, connected_at, disconnected_at)
       values (?, ?, ?, 1, ?, ?, ?, ?, null)
       on conflict (provider, external_id) do update set is_connected = 1, tokens = excluded.tokens,
         connection_metadata = excluded.connection_metadata, connected_at = excluded.connected_at returning *`,
      [provider, externalId, profileId, encrypted, JSON.stringify(metadata), at, at],
    )
    if (row === undefined) throw new Error('The connection was not kept.')
    return this.#toConnection(row)
  }

  /** Returns whether the person was connected. The tokens are cleared. */
  async disconnect(provider: Provider, externalId: string, at: number): Promise<boolean> {
    const rows = await this.database.rows(
      `update wt_health_connections set is_connected = 0, tokens = null, disconnected_at = ?
       where provider = ? and external_id = ? and is_connected = 1 and connected_at <= ? returning profile_id`,
      [at, provider, externalId, at],
    )
    return rows.length > 0
  }

  /** Replaces the tokens, unless somebody else has replaced or cleared them since `connection` was read. */
  async refreshTokens({ provider, externalId, tokens }: Connection, next: Tokens): Promise<boolean> {
    const current = await this.find(provider, externalId)
    if (current?.isConnected !== true || current.tokens?.refresh !== tokens?.refresh) return false
    const sql =
      'update wt_health_connections set tokens = ? where provider = ? and external_id = ? and is_connected = 1'
    await this.database.rows(sql, [this.#encryptTokens(provider, externalId, next), provider, externalId])
    return true
  }

  async setMetadata({ provider, externalId }: Connection, metadata: Connection['metadata']): Promise<void> {
    const sql = 'update wt_health_connections set connection_metadata = ? where provider = ? and external_id = ?'
    await this.database.rows(sql, [JSON.stringify(metadata), provider, externalId])
  }

  /** Replaces the metrics of the item, unless a newer version is kept or the person is gone. */
  async save(one: ItemVersion, { metrics, missing }: Mapped): Promise<void> {
    const { connection, item, type, version, event } = one
    const { provider, externalId, profileId } = connection
    const raw = this.#vault.encrypt(one.raw, `raw/${provider}/${externalId}/${item}`)
    const isCurrent = `exists (select 1 from wt_health_items
      where provider = ? and external_id = ? and item = ? and version = ? and event = ?)`
    const current = [provider, externalId, item, version, event]
    const insert = (metric: Mapped['metrics'][number]): Statement => ({
      sql: `insert into wt_health_metrics (dedupe_hash, profile_id, source, external_id, item, metric_type, value_num,
              value_text, unit, start_time, end_time, metric_date, version, raw_payload_json)
            select ?, ?, ?, ?, ?, ?, cast(? as double precision), ?, ?, ?, ?, ?, cast(? as bigint), ? where ${isCurrent}
            on conflict (dedupe_hash) do update set item = excluded.item, value_num = excluded.value_num,
              value_text = excluded.value_text, unit = excluded.unit, metric_date = excluded.metric_date,
              version = excluded.version, raw_payload_json = excluded.raw_payload_json
            where wt_health_metrics.version <= excluded.version`,
      values: [
        dedupeHash(profileId, provider, metric),
        profileId,
        provider,
        externalId,
        item,
        metric.type,
        metric.value,
        JSON.stringify(metric.text),
        metric.unit,
        metric.start,
        metric.end,
        metric.date,
        version,
        raw,
        ...current,
      ],
    })
    const date = metrics[0]?.date ?? null
    await this.database.batch([
      // A purge of the person waits for us, or we see that the person is gone.
      this.#lock(provider, externalId),
      {
        sql: `insert into wt_health_items (provider, external_id, item, event_type, version, event, item_date, missing)
              select ?, ?, ?, ?, cast(? as bigint), ?, ?, ? where exists
                (select 1 from wt_health_connections where provider = ? and external_id = ?)
              on conflict (provider, external_id, item) do update set event_type = excluded.event_type,
                version = excluded.version, event = excluded.event, item_date = excluded.item_date,
                missing = excluded.missing
              where wt_health_items.version <= excluded.version`,
        values: [provider, externalId, item, type, version, event, date, JSON.stringify(missing), provider, externalId],
      },
      {
        sql: `delete from wt_health_metrics where source = ? and external_id = ? and item = ? and ${isCurrent}`,
        values: [provider, externalId, item, ...current],
      },
      ...metrics.map(insert),
    ])
  }

  /** Removes the metrics of an item that its provider has deleted. */
  async remove({ provider, externalId }: Connection, item: string): Promise<void> {
    const values = [provider, externalId, item]
    await this.database.batch([
      { sql: 'delete from wt_health_metrics where source = ? and external_id = ? and item = ?', values },
      { sql: 'delete from wt_health_items where provider = ? and external_id = ? and item = ?', values },
    ])
  }

  /** Removes everything that is kept of a person. */
  async purge(profileId: string): Promise<void> {
    const values = [profileId]
    const connections = 'select external_id from wt_health_connections where profile_id = ?'
    const lock = this.database.kind === 'postgres' ? ' for update' : ''
    await this.database.batch([
      { sql: connections + lock, values },
      { sql: `delete from wt_health_items where external_id in (${connections})`, values },
      { sql: 'delete from wt_health_metrics where profile_id = ?', values },
      { sql: 'delete from wt_backfills where profile_id = ?', values },
      { sql: 'delete from wt_health_connections where profile_id = ?', values },
    ])
  }

  /** The newest metrics of a person, with the fields that were missing in their payloads. */
  async metricsOf(profileId: string, most: number): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows = await this.database.rows(
      `select m.*, i.missing from wt_health_metrics m left join wt_health_items i
         on i.provider = m.source and i.external_id = m.external_id and i.item = m.item
       where profile_id = ? order by metric_date desc, metric_type, start_time limit ?`,
      [profileId, most],
    )
    return rows.map((row) => ({
      source: row['source'],
      type: row['metric_type'],
      value: Number(row['value_num']),
      unit: row['unit'],
      text: JSON.parse(String(row['value_text'])) as unknown,
      start: row['start_time'],
      end: row['end_time'],
      missing: JSON.parse(String(row['missing'] ?? '[]')) as unknown,
    }))
  }

  /** The payload from which a metric was read. */
  raw(row: Row): unknown {
    const place = `raw/${row['source']}/${row['external_id']}/${row['item']}`
    return JSON.parse(this.#vault.decrypt(String(row['raw_payload_json']), place))
  }

  #lock(provider: Provider, externalId: string): Statement {
    const sql = 'select 1 from wt_health_connections where provider = ? and external_id = ?'
    return { sql: this.database.kind === 'postgres' ? `${sql} for share` : sql, values: [provider, externalId] }
  }

  #encryptTokens(provider: Provider, externalId: string, tokens: Tokens): string {
    return this.#vault.encrypt(JSON.stringify(tokens), `tokens/${provider}/${externalId}`)
  }

  #toConnection(row: Row): Connection {
    const [provider, externalId] = [row['provider'] as Provider, String(row['external_id'])]
    const metadata = JSON.parse(String(row['connection_metadata'])) as Record<string, unknown>
    const encrypted = row['tokens']
    const tokens =
      typeof encrypted === 'string'
        ? (JSON.parse(this.#vault.decrypt(encrypted, `tokens/${provider}/${externalId}`)) as Tokens)
        : undefined
    return {
      provider,
      externalId,
      profileId: String(row['profile_id']),
      isConnected: Number(row['is_connected']) === 1,
      tokens,
      metadata,
      permissions: parsePermissions(metadata['permissions']),
      createdAt: Number(row['created_at']),
      connectedAt: Number(row['connected_at']),
      disconnectedAt: row['disconnected_at'] === null ? undefined : Number(row['disconnected_at']),
    }
  }
}
