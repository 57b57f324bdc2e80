-- The first schema. An event is one row that is written once. The rows that change all the time are narrow: a lane and its
-- placements (table places) hold numbers. Times are milliseconds; NULL in place of a deadline means never. In texts from users,
-- U+0001 escapes U+0000 and itself. Keys are kept as bytes and found by the lane's id, which is their hash.

create table meta (only_row boolean primary key default true check (only_row), name text not null, routes bigint not null, schema int not null);

-- Numbers everything. A transaction takes a block once it has its locks.
create sequence numbers increment by 1000;

create table events (
  seq bigint primary key,
  id text collate "C" not null,
  identity text collate "C",
  dedupe_until bigint not null,
  source text not null,
  type text not null,
  time bigint not null,
  tenant text not null,
  subject text not null,
  attributes text not null,
  arrived bigint not null,
  lanes text[] not null,
  -- The flows that skipped the event and why, as JSON: flow and reason alternate; empty for none.
  skips text not null default '',
  size int not null,
  purged_hash text not null default '',
  doomed boolean not null default false,
  request bytea not null,
  body bytea not null,
  constraint events_id unique (id),
  constraint events_identity unique (identity)
);
create index events_tenant on events (tenant, seq) where tenant <> '';
-- A subject may be longer than an index entry.
create index events_subject on events (hashtextextended(subject, 0), seq) where subject <> '';
create index events_doomed on events (seq) where doomed;
-- Lets the planner estimate how many events arrived within a period; no index covers this.
create statistics events_received on (to_timestamp(arrived / 1000::double precision)) from events;

-- The total size of all bodies and requests. Each connection updates one row.
create table stored_bytes (stripe int primary key, bytes bigint not null) with (fillfactor = 10);
insert into stored_bytes select n, 0 from generate_series(0, 15) n;

create table receipts (
  event bigint not null, n bigint not null, at bigint not null, kind text not null, id text not null, body_hash text not null,
  primary key (event, n)
);

create table lanes (
  id text collate "C" primary key,
  row bigint not null,
  flow text collate "C" not null,
  key bytea not null,
  tenant text not null,
  grp text collate "C" not null,
  tail bigint not null,
  waiting int not null,
  bytes bigint not null,
  win bigint,
  cap bigint,
  due bigint,
  ticket bigint not null,
  line smallint not null,
  -- The lane's position in the deadline index, never after its deadline. An event that only moves the deadline back keeps the
  -- position, so no index changes; the next scan moves it. A claim keeps it too: scans skip the lane while its lease is live.
  rings bigint,
  ring_ticket bigint not null,
  -- The lease end at the time when the position was set: a claimed lane keeps its position, and scans skip it.
  ring_lease bigint,
  -- One of the lane's placements: a lane with a single event has no row in the table places.
  first_pos bigint,
  first_event bigint,
  first_size int,
  first_cap bigint,
  -- The end of the live lease; NULL if no run is running.
  lease bigint,
  -- Set only while the lane is empty: the row is kept until then, to remember when the lane last ran or that it is held.
  keep_until bigint,
  -- The run of most lanes: its first attempt is running. The others are in `rest`.
  token bigint,
  run bigint,
  started bigint,
  upto bigint,
  run_events int,
  run_bytes bigint,
  run_cap bigint,
  -- Whether the deadline does not depend on the window: that of a run, or of a dead letter. No event can change `rest` then.
  pinned boolean not null default false,
  -- What few lanes have, as JSON: another run, hold, replays, dead letters.
  rest text
-- Leaves room to write each row once more in its page, with a run.
) with (fillfactor = 35);
create index lanes_row on lanes (row);
-- The timer and the queue of every flow. The group is the last column, so that lanes without a group are found without reading
-- the others.
create index lanes_line on lanes (flow, line, rings, ring_ticket, grp) where rings is not null;
create index lanes_share on lanes (flow, grp, line, rings, ring_ticket) where rings is not null and grp <> '';
create index lanes_live on lanes (flow, grp) where ring_lease is not null;
create index lanes_keep on lanes (keep_until) where keep_until is not null;
create index lanes_tenant on lanes (flow, tenant, row) where tenant <> '';

create table places (
  lane bigint not null, rank smallint not null, pos bigint not null, event bigint not null, size int not null,
  -- Arrival + max of the event; for a replay, the time of the replay.
  cap bigint not null,
  -- The replay that placed the event; NULL for a live event.
  replay text,
  primary key (lane, rank, pos)
);

create table runs (
  n bigint primary key,
  parent text not null,
  lane text collate "C" not null,
  flow text not null,
  key bytea not null,
  tenant text not null,
  kind text not null,
  reason text not null,
  started bigint not null,
  ended bigint not null,
  tries int not null,
  lapses int not null,
  events bigint[] not null,
  attempts text
);
create index runs_lane on runs (lane, n);

create table letters (
  id text collate "C" primary key,
  ord bigint not null,
  lane text collate "C" not null,
  flow text collate "C" not null,
  key bytea not null,
  tenant text not null,
  grp text not null,
  parent text not null,
  state text not null,
  reason text not null,
  at bigint not null,
  tries int not null,
  lapses int not null,
  blocks boolean not null,
  -- pos, event and size of each placement.
  places bigint[] not null,
  attempts text not null,
  -- The replay of its events; '' for live events.
  replay text not null
);
create index letters_lane on letters (lane, ord);
create index letters_ord on letters (ord);
create index letters_flow on letters (flow, ord);
create index letters_at on letters (at) where state = 'dead' and not blocks;

create table marks (
  id bigint primary key,
  event bigint not null,
  flow text not null,
  reason text not null,
  error text not null,
  since bigint not null,
  due bigint not null,
  tries int not null,
  token bigint not null
);
create index marks_due on marks (due, id);
create index marks_event on marks (event);
create index marks_outbox on marks (error, id) where reason = 'outbox';

-- Rejects what the rules would reject, while the publisher's transaction can still be rolled back. The checks are one function:
-- the server parses written-out checks anew with each insert, which took publishing twice as long. Lengths exclude the escape
-- characters.
create function outbox_fits(
  id text, source text, type text, "time" bigint, tenant text, subject text, attributes text, dedupe_id text, dedupe_for bigint, to_flows text[], body bytea
) returns boolean language plpgsql immutable as $$
begin
  return char_length(replace(id, chr(1), '')) between 1 and 128
    and char_length(replace(source, chr(1), '')) between 1 and 1024
    and char_length(replace(type, chr(1), '')) between 1 and 1024
    -- The range of a JavaScript Date.
    and "time" between -8640000000000000 and 8640000000000000
    -- The maximum that fits the indexes of events and lanes: a row that cannot be stored would block all rows behind it.
    and octet_length(replace(tenant, chr(1), '')) <= 1024
    and char_length(replace(subject, chr(1), '')) <= 16384
    and char_length(replace(dedupe_id, chr(1), '')) between 1 and 1024
    and dedupe_for between 0 and 9007199254740991
    and (to_flows is null or coalesce(array_ndims(to_flows) = 1 and array_position(to_flows, null) is null and '' <> all (to_flows), false))
    -- The process that takes the event in holds it in memory several times.
    and octet_length(attributes) + octet_length(body) <= 16777216;
end $$;

-- Events that other programs published inside their own transactions: one row, and no lock for which another writer waits.
create table outbox (
  tx xid8 not null default pg_current_xact_id(),
  n bigint generated always as identity,
  id text not null, source text not null, type text not null, time bigint not null, tenant text not null, subject text not null,
  attributes text not null, dedupe_id text not null, dedupe_for bigint not null, to_flows text[], body bytea not null,
  -- Why the event was not taken in. The row stays here until a person corrects it and sets this column to NULL again.
  refused text,
  primary key (tx, n),
  constraint outbox_fits check (outbox_fits(id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body))
);

-- Ids sort by time: 10 characters of time, then 16 random ones.
create function new_event_id(at timestamptz) returns text language plpgsql volatile set search_path from current as $$
declare
  letters constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  left_over bigint := floor(extract(epoch from at) * 1000);
  chance constant bytea := uuid_send(gen_random_uuid());
  made text := '';
begin
  for place in 1..10 loop
    made := substr(letters, (left_over % 32)::int + 1, 1) || made;
    left_over := left_over / 32;
  end loop;
  for place in 0..15 loop
    made := made || substr(letters, get_byte(chance, place) % 32 + 1, 1);
  end loop;
  return made;
end $$;

-- Publishes an event if and only if the transaction commits. Returns the id of the event.
create function publish(
  type text,
  data jsonb default null,
  source text default 'app',
  subject text default '',
  tenant text default '',
  id text default null,
  dedupe_id text default null,
  "time" timestamptz default clock_timestamp(),
  attributes jsonb default null,
  body bytea default null,
  to_flows text[] default null,
  dedupe_for interval default '7 days'
) returns text language plpgsql volatile set search_path from current as $$
declare
  -- The escaped form of U+0001.
  as_written constant text := chr(1) || '1';
  named constant text := coalesce(publish.id, new_event_id(clock_timestamp()));
  said constant text := coalesce(publish.attributes::text, '');
  bytes constant bytea := coalesce(publish.body, convert_to(data::text, 'UTF8'), ''::bytea);
  -- The fault and its fix.
  wrong constant text[] := case
    when publish.type is null or publish.type = '' then array['type is missing', 'Give the event a type, as in sluice.publish(''order.paid'', …).']
    when char_length(publish.type) > 1024 then array['type is too long', 'It has at most 1,024 characters.']
    when publish.source is null or publish.source = '' or publish.source = 'sluice' or publish.source like 'sluice.%' then array['source is missing or ours', 'Name the part of your system it comes from; ''sluice'' and names that begin with ''sluice.'' are taken.']
    when char_length(publish.source) > 1024 then array['source is too long', 'It has at most 1,024 characters.']
    when char_length(named) not between 1 and 128 then array['id is empty or too long', 'It has 1 to 128 characters; a longer name can be its dedupe_id.']
    when char_length(publish.dedupe_id) not between 1 and 1024 then array['dedupe_id is empty or too long', 'It has 1 to 1,024 characters.']
    when octet_length(publish.tenant) > 1024 then array['tenant is too long', 'It has at most 1,024 bytes.']
    when char_length(publish.subject) > 16384 then array['subject is too long', 'It has at most 16,384 characters.']
    when publish."time" is null or not isfinite(publish."time") or publish."time" > '275760-09-13 00:00:00+00' then array['time is none that a date can be', 'Give a moment before the year 275760, or leave it out.']
    when publish.dedupe_for is null or not isfinite(publish.dedupe_for) or publish.dedupe_for < '0' then array['dedupe_for is no length of time', 'Give an interval of 0 or more, as in ''7 days''.']
    when jsonb_typeof(publish.attributes) <> 'object' or publish.attributes ? 'sluicesealed' then array['attributes must be an object', 'Give names and values, none of them sluicesealed.']
    when data is not null and publish.body is not null then array['both data and body', 'Give one of them.']
    when publish.to_flows is not null and (array_ndims(publish.to_flows) is distinct from 1 or array_position(publish.to_flows, null) is not null or '' = any (publish.to_flows))
      then array['to_flows is no list of names', 'Name one flow or more, as in array[''rank-user''], or leave it out.']
    when octet_length(said) + octet_length(bytes) > 16777216 then array['data and attributes are too long', 'Together they have at most 16 MB; publish where the rest can be found.']
  end;
begin
  if wrong is not null then
    raise exception 'sluice: %', wrong[1] using hint = wrong[2], errcode = '22023';
  end if;
  insert into outbox (id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body)
  values (
    replace(named, chr(1), as_written), replace(publish.source, chr(1), as_written), replace(publish.type, chr(1), as_written),
    floor(extract(epoch from publish."time") * 1000), replace(coalesce(publish.tenant, ''), chr(1), as_written),
    replace(coalesce(publish.subject, ''), chr(1), as_written), said,
    replace(coalesce(publish.dedupe_id, named), chr(1), as_written),
    least(floor(extract(epoch from publish.dedupe_for) * 1000), 9007199254740991), publish.to_flows, bytes
  );
  return named;
end $$;

create table limits (name text collate "C" primary key, idle_at bigint not null, state text not null) with (fillfactor = 50);
create index limits_idle on limits (idle_at);
create table limit_pages (name text collate "C" not null, n bigint not null, upto double precision not null, page text not null, primary key (name, n));
create table tickets (
  ticket text collate "C" primary key, ord bigint not null, at double precision not null, used boolean not null, limits text not null
);
create index tickets_at on tickets (at);
-- The unused tickets under each of their limits.
create table waits (
  name text collate "C" not null, ord bigint not null, at double precision not null, ticket text not null, primary key (name, ord)
);
create index waits_at on waits (name, at);

create table processes (id text collate "C" primary key, at bigint not null, request bigint not null, answer text not null) with (fillfactor = 50);
-- Written by every settle-and-claim call: compressing the value takes longer than writing it.
alter table processes alter column answer set storage external;
-- What processes did lately, for watchers in other processes. Written only while a watcher exists; no behaviour depends on it.
create unlogged table shown (n bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(), process text not null, changes text not null);
create table permits (
  name text collate "C" not null, process text collate "C" not null, n int not null, until bigint not null, primary key (name, process)
);
create table pauses (flow text collate "C" primary key, reason text not null, by text not null, since bigint not null);
create table pressure (flow text collate "C" primary key, level double precision not null, at bigint not null, raised_at bigint not null);
-- When each group was last served: a number of the counter, and the time.
create table served (
  flow text collate "C" not null, grp text collate "C" not null, turn bigint not null, at bigint not null, primary key (flow, grp)
);
create index served_at on served (at);
create table replays (replay text collate "C" not null, event bigint not null, at bigint not null, primary key (replay, event));
create index replays_at on replays (at);

create table docs (kind text collate "C" not null, id text collate "C" not null, rev bigint not null, body bytea not null, primary key (kind, id));
create table audit (id bigint primary key, at bigint not null, who text not null, what text not null, chain text not null);

-- The roles that may read beside the owner, and their tenant: NULL means the tenant that the session names in sluice.tenant.
create table readers (role name primary key, tenant text, every_tenant boolean not null);

-- The role that runs the store owns the tables, and no policy restricts it. Any other role, even with grants, sees only rows
-- that a policy allows, and none in a table without a policy: documents hold secrets.
do $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = current_schema loop
    execute format('alter table %I enable row level security', name);
  end loop;
end $$;
create policy publisher on outbox for insert with check (true);
create policy reader on readers for select using (
  exists (select 1 from pg_roles r where r.rolname = readers.role and pg_has_role(r.oid, 'usage'))
);

-- Function bodies in this form are bound to our tables at creation: no other table of the same name can take their place.
create function sees_every_tenant() returns boolean stable begin atomic
  select not row_security_active('readers'::regclass::oid) or exists (select 1 from readers where every_tenant);
end;
create function seen_tenants() returns text[] stable begin atomic
  select array_agg(coalesce(tenant, nullif(current_setting('sluice.tenant', true), ''))) from readers;
end;

-- A subquery without outer references runs once for a query, not for each row.
do $$ declare name text; begin
  foreach name in array array['events', 'lanes', 'runs', 'letters'] loop
    execute format('create policy reader on %I for select
      using ((select sees_every_tenant()) or tenant = any ((select seen_tenants())::text[]))', name);
  end loop;
  foreach name in array array['receipts', 'places', 'marks'] loop
    execute format('create policy reader on %I for select
      using ((select sees_every_tenant()) or exists (select 1 from events e where e.seq = %1$I.event))', name);
  end loop;
  foreach name in array array['limits', 'pauses'] loop
    execute format('create policy reader on %I for select using ((select sees_every_tenant()))', name);
  end loop;
end $$;

-- Grants a reader the view, and each table with a policy for readers, of any release.
create function share_with(reader name) returns void language plpgsql volatile set search_path from current as $$
declare
  shared name;
begin
  execute format('grant usage on schema %I to %I', current_schema, reader);
  for shared in
    select 'work' union all
    select c.relname from pg_policy p join pg_class c on c.oid = p.polrelid
    where p.polname = 'reader' and c.relnamespace = quote_ident(current_schema)::regnamespace
  loop
    execute format('grant select on %I.%I to %I', current_schema, shared, reader);
  end loop;
end $$;

-- Grants earlier readers access to new tables and views. A role that was dropped and created again under the same name is a
-- stranger.
create function share_again() returns void language plpgsql volatile set search_path from current as $$
begin
  perform share_with(pg_get_userbyid(a.grantee)) from pg_class c, aclexplode(c.relacl) a
  where c.oid = 'readers'::regclass and a.privilege_type = 'SELECT' and a.grantee not in (0, c.relowner);
end $$;

-- Without tenant, the reader sees the tenant that the session names in sluice.tenant, and nothing while it names none.
create function grant_reader(role name, tenant text default null, every_tenant boolean default false)
returns void language plpgsql volatile set search_path from current as $$
declare
  found record;
begin
  select r.rolsuper or r.rolbypassrls or pg_has_role(r.oid, c.relowner, 'member') as is_above into found
  from pg_roles r, pg_class c where r.rolname = grant_reader.role and c.oid = 'readers'::regclass;
  if found is null then
    raise exception 'sluice: there is no role "%"', grant_reader.role using hint = 'Make it first: create role … login.', errcode = '42704';
  end if;
  if found.is_above then
    raise exception 'sluice: role "%" sees everything, whatever is granted', grant_reader.role
      using hint = 'Take one that is no superuser, has no BYPASSRLS and is no member of the owner.', errcode = '22023';
  end if;
  if grant_reader.tenant = '' or (grant_reader.tenant is not null and grant_reader.every_tenant) then
    raise exception 'sluice: which tenant?' using hint = 'Name one, or say every_tenant => true, or neither: then sluice.tenant of the session counts.', errcode = '22023';
  end if;
  -- The lock keeps processes from opening the store meanwhile.
  perform pg_advisory_xact_lock(hashtextextended('sluice/schema/' || current_schema, 0));
  insert into readers values (grant_reader.role, grant_reader.tenant, grant_reader.every_tenant)
  on conflict on constraint readers_pkey do update set tenant = excluded.tenant, every_tenant = excluded.every_tenant;
  perform share_with(grant_reader.role);
end $$;

create function revoke_reader(role name) returns void language plpgsql volatile set search_path from current as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('sluice/schema/' || current_schema, 0));
  delete from readers r where r.role = revoke_reader.role;
  execute format('revoke select on all tables in schema %I from %I', current_schema, revoke_reader.role);
  -- A role that also publishes still needs access to the schema.
  if not has_table_privilege(revoke_reader.role, 'outbox', 'insert') then
    execute format('revoke usage on schema %I from %I', current_schema, revoke_reader.role);
  end if;
end $$;
revoke execute on function share_with, share_again, grant_reader, revoke_reader from public;
