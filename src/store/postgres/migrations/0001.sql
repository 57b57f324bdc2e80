-- The first schema. An event is one row that is written once; what changes all the time is narrow: a lane and its places
-- hold numbers.
-- Moments are milliseconds; NULL in place of a deadline means never. Texts that people write have U+0000 and U+0001
-- escaped by U+0001; keys are kept as bytes and found by the hash that is the lane's id.

create table meta (only_row boolean primary key default true check (only_row), name text not null, routes bigint not null, schema int not null);

-- Everything that is numbered: a transaction takes a block, once it has its locks.
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
  size int not null,
  purged_hash text not null default '',
  doomed boolean not null default false,
  request bytea not null,
  body bytea not null,
  constraint events_id unique (id),
  constraint events_identity unique (identity)
);
create index events_tenant on events (tenant, seq) where tenant <> '';
create index events_doomed on events (seq) where doomed;

-- How much all bodies and requests take. Each connection counts on one of them.
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
  -- Where it stands in the index: not behind its deadline. An event that only pushes the deadline back leaves it where it
  -- is, so that no index has to know; whoever looks for ready lanes finds it too early, and puts it where it belongs.
  rings bigint,
  ring_ticket bigint not null,
  -- Another one with every write.
  rev bigint not null,
  -- One of its places: a lane with a single event has no row in the table of places.
  first_pos bigint,
  first_event bigint,
  first_size int,
  -- When the live lease ends; NULL when nothing runs.
  lease bigint,
  -- Set only while nothing is in the lane: until then it is kept, to remember when it last ran or that it is held.
  keep_until bigint,
  -- What most lanes do not have, as JSON: run, hold, replays, dead letters.
  rest text
) with (fillfactor = 50);
create index lanes_row on lanes (row);
-- The timer and the queue of every flow at once.
create index lanes_line on lanes (flow, line, rings, ring_ticket) where rings is not null;
create index lanes_share on lanes (flow, grp, line, rings, ring_ticket) where rings is not null and grp <> '';
create index lanes_live on lanes (flow, grp, lease) where lease is not null;
create index lanes_keep on lanes (keep_until) where keep_until is not null;
create index lanes_tenant on lanes (flow, tenant, row) where tenant <> '';

create table places (
  lane bigint not null, rank smallint not null, pos bigint not null, event bigint not null, size int not null,
  primary key (lane, rank, pos)
);

create table runs (
  -- The number in the run's id.
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
  flow text not null,
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
  -- pos, event, size of each.
  places bigint[] not null,
  attempts text not null
);
create index letters_lane on letters (lane, state, ord);
create index letters_ord on letters (ord);
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

-- Who decided on what is no longer so is refused, in the middle of what it has sent.
create function must_be(counted bigint, wanted bigint) returns void language plpgsql as $$
begin
  if counted <> wanted then
    raise exception 'sluice: decided on what is no longer so' using errcode = 'SL001';
  end if;
end $$;

-- What was published inside a transaction of somebody else's. One row, no lock that another writer waits for.
create table outbox (
  n bigint generated always as identity primary key,
  tx xid8 not null default pg_current_xact_id(),
  id text not null check (char_length(id) between 1 and 128),
  source text not null check (char_length(source) between 1 and 1024),
  type text not null check (char_length(type) between 1 and 1024),
  time bigint not null,
  tenant text not null,
  subject text not null,
  attributes text not null,
  dedupe_id text not null check (char_length(dedupe_id) between 1 and 1024),
  dedupe_for bigint not null check (dedupe_for >= 0),
  to_flows text[],
  body bytea not null
);

-- Ids sort by time: 10 characters of it, 16 of chance.
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

-- Published if and only if the transaction commits, whatever its language and length. Answers the id of the event.
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
  named constant text := coalesce(publish.id, new_event_id(clock_timestamp()));
begin
  if publish.type is null or publish.type = '' then
    raise exception 'sluice: type is missing' using hint = 'Give the event a type, as in sluice.publish(''order.paid'', …).', errcode = '22023';
  end if;
  if publish.source is null or publish.source = '' or publish.source like 'sluice.%' then
    raise exception 'sluice: source is missing or ours' using hint = 'Name the part of your system it comes from; names that begin with ''sluice.'' are taken.', errcode = '22023';
  end if;
  if publish.attributes is not null and (jsonb_typeof(publish.attributes) <> 'object' or publish.attributes ? 'sluicesealed') then
    raise exception 'sluice: attributes must be an object' using hint = 'Give names and values, none of them sluicesealed.', errcode = '22023';
  end if;
  if data is not null and publish.body is not null then
    raise exception 'sluice: both data and body' using hint = 'Give one of them.', errcode = '22023';
  end if;
  insert into outbox (id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body)
  values (
    named, publish.source, publish.type, floor(extract(epoch from publish."time") * 1000), coalesce(publish.tenant, ''),
    coalesce(publish.subject, ''), coalesce(publish.attributes::text, ''), coalesce(publish.dedupe_id, named),
    floor(extract(epoch from publish.dedupe_for) * 1000), publish.to_flows,
    coalesce(publish.body, convert_to(data::text, 'UTF8'), ''::bytea)
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
-- Tickets that are not used, under each of their limits.
create table waits (
  name text collate "C" not null, ord bigint not null, at double precision not null, ticket text not null, primary key (name, ord)
);
create index waits_at on waits (name, at);

create table processes (id text collate "C" primary key, at bigint not null, request bigint not null, answer text not null) with (fillfactor = 50);
-- Written with every turn: to make it shorter takes longer than to write it.
alter table processes alter column answer set storage external;
create table permits (
  name text collate "C" not null, process text collate "C" not null, n int not null, until bigint not null, primary key (name, process)
);
create table pauses (flow text collate "C" primary key, reason text not null, by text not null, since bigint not null);
create table pressure (flow text collate "C" primary key, level double precision not null, at bigint not null, raised_at bigint not null);
-- When a group had its last turn: a number of the counter, and the time.
create table served (
  flow text collate "C" not null, grp text collate "C" not null, turn bigint not null, at bigint not null, primary key (flow, grp)
);
create index served_at on served (at);
create table replays (replay text collate "C" not null, event bigint not null, at bigint not null, primary key (replay, event));
create index replays_at on replays (at);

create table docs (kind text collate "C" not null, id text collate "C" not null, rev bigint not null, body bytea not null, primary key (kind, id));
create table audit (id bigint primary key, at bigint not null, who text not null, what text not null, chain text not null);
