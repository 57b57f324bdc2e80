// The tables of the app. They are the same in SQLite and PostgreSQL; only PostgreSQL has row-level security.

const TABLES = `
  create table if not exists wt_health_connections (
    provider text not null,
    -- The provider's id of the person. It stays the same when the person leaves and comes back.
    external_id text not null,
    profile_id text not null,
    is_connected integer not null,
    -- Encrypted; null while the person is not connected.
    tokens text,
    -- JSON: the permissions, and when the provider last changed them.
    connection_metadata text not null,
    -- When the person was connected for the first time, and most recently.
    created_at bigint not null,
    connected_at bigint not null,
    disconnected_at bigint,
    primary key (provider, external_id)
  );
  create index if not exists wt_health_connections_profile on wt_health_connections (profile_id);
  -- The newest version of each item that was received. Metrics refer to it, so that a newer version replaces all of them.
  create table if not exists wt_health_items (
    provider text not null,
    external_id text not null,
    item text not null,
    event_type text not null,
    -- When the version arrived, and its event.
    version bigint not null,
    event text not null,
    item_date text,
    -- JSON: the fields that were missing.
    missing text not null,
    primary key (provider, external_id, item)
  );
  create table if not exists wt_health_metrics (
    dedupe_hash text primary key,
    profile_id text not null,
    source text not null,
    external_id text not null,
    item text not null,
    metric_type text not null,
    value_num double precision not null,
    value_text text not null,
    unit text not null,
    start_time text not null,
    end_time text not null,
    metric_date text not null,
    version bigint not null,
    -- Encrypted.
    raw_payload_json text not null
  );
  create index if not exists wt_health_metrics_item on wt_health_metrics (source, external_id, item);
  create index if not exists wt_health_metrics_profile on wt_health_metrics (profile_id, metric_type, metric_date);
  create table if not exists wt_backfills (
    id text not null,
    profile_id text not null,
    external_id text not null,
    event_type text not null,
    from_time bigint not null,
    to_time bigint not null,
    state text not null,
    reason text not null,
    asked_at bigint not null,
    primary key (id, event_type, from_time)
  )`

/**
 * The app owns the tables and sees every row. Any other role sees the metrics of the profile that its session names, and no
 * connections: `set welltrack.profile_id = '…'`.
 */
const POSTGRES_ONLY = `
  alter table wt_health_connections enable row level security;
  alter table wt_health_items enable row level security;
  alter table wt_health_metrics enable row level security;
  alter table wt_backfills enable row level security;
  do $$ begin
    create policy own_metrics on wt_health_metrics for select
      using (profile_id = current_setting('welltrack.profile_id', true));
  exception when duplicate_object then null; end $$`

export const DATABASE = { name: 'welltrack', tables: TABLES, postgresOnly: POSTGRES_ONLY } as const
