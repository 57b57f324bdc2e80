-- The first schema. Hot rows are narrow: bodies sit in events, a lane and its places hold numbers.
-- Moments are milliseconds; NULL in place of a deadline means never.

-- Under 'owner' the one store that may write: each that opens the file to work on it takes it over.
create table meta (name text primary key, value any not null) without rowid, strict;

create table events (
  seq integer primary key,
  id text not null,
  -- NULL once the identity may be used again.
  identity text,
  dedupe_until integer not null,
  source text not null,
  type text not null,
  time integer not null,
  tenant text not null,
  subject text not null,
  attributes text not null,
  arrived integer not null,
  -- Lane ids, joined by commas.
  lanes text not null,
  -- Flows that gave it no place and why, as JSON: flow and reason in turn; empty for none.
  skips text not null,
  purged_hash text not null,
  doomed integer not null,
  request blob not null,
  body blob not null
) strict;
create unique index events_id on events (id);
create index events_tenant on events (tenant, seq) where tenant <> '';
create index events_subject on events (subject, seq) where subject <> '';
create index events_doomed on events (seq) where doomed = 1;

-- Which event has an identity: the first 48 bits of it, and the event's row to compare the whole with. Written in batches
-- by ranges of h, some time after the event; meta.identified says from which event on memory has to be filled again.
create table identities (h integer not null, event integer not null, primary key (h, event)) without rowid, strict;

create table receipts (
  event integer not null,
  n integer not null,
  at integer not null,
  kind text not null,
  id text not null,
  body_hash text not null,
  primary key (event, n)
) without rowid, strict;

create table lanes (
  row integer primary key,
  id text not null,
  flow text not null,
  key text not null,
  tenant text not null,
  grp text not null,
  tail integer not null,
  waiting integer not null,
  bytes integer not null,
  win integer,
  cap integer,
  due integer,
  ticket integer not null,
  line integer not null,
  -- When the live lease ends; NULL when nothing runs.
  lease integer,
  -- Set only while nothing is in the lane: until then it is kept, to remember when it last ran or that it is held.
  keep_until integer,
  -- The newest places of live events: how many are in the table places, and behind a stroke up to which position those were
  -- taken that its first list may still name; how many here; then pos,event,size,cap of each.
  here text not null,
  -- What most lanes do not have, as JSON: run, hold, replays, dead letters.
  rest text
) strict;
create unique index lanes_id on lanes (id);
-- The timer and the queue of every flow at once.
create index lanes_line on lanes (flow, line, due, ticket) where due is not null;
create index lanes_share on lanes (flow, grp, line, due, ticket) where due is not null and grp <> '';
create index lanes_live on lanes (flow, grp, lease) where lease is not null;
create index lanes_keep on lanes (keep_until) where keep_until is not null;
create index lanes_tenant on lanes (flow, tenant, row) where tenant <> '';

-- What the rows of lanes do not have yet: of each lane that a commit has only pushed back its row, tail, waiting, bytes,
-- win, cap, due and ticket, and pos,event,size,cap of each place that came; lanes are separated by semicolons.
create table pushed_back (n integer primary key, list text not null) strict;

-- Places of replays, and the older ones of live events: the newest are in the lane's own row.
create table places (
  lane integer not null,
  rank integer not null,
  -- The last position of the list when it was written.
  pos integer not null,
  -- pos,event,size,cap of each.
  list text not null,
  -- The replay that placed the event. A list of rank 1 has one placement.
  replay text,
  primary key (lane, rank, pos)
) without rowid, strict;

create table runs (
  -- The number in the run's id.
  n integer primary key,
  parent text not null default '',
  lane text not null,
  flow text not null,
  key text not null,
  tenant text not null default '',
  kind text not null default 'done',
  reason text not null default '',
  started integer not null,
  ended integer not null,
  tries integer not null default 0,
  lapses integer not null default 0,
  events text not null,
  attempts text
) strict;

-- Which of them a lane has had. Written in batches some time after the run; meta.listed says from which run on memory has to be
-- filled again.
create table lane_runs (lane text not null, run integer not null, primary key (lane, run)) without rowid, strict;

create table letters (
  id text primary key,
  ord integer not null,
  lane text not null,
  flow text not null,
  key text not null,
  tenant text not null,
  grp text not null,
  parent text not null,
  state text not null,
  reason text not null,
  at integer not null,
  tries integer not null,
  lapses integer not null,
  blocks integer not null,
  places text not null,
  attempts text not null,
  -- The replay of its events; '' for live events.
  replay text not null
) strict;
-- With the places: what a lane's letters hold is asked for by retention.
create index letters_lane on letters (lane, state, ord, places);
-- With the time, so that they are counted by these alone: a row has all that went wrong, and is long.
create index letters_ord on letters (ord, at);
create index letters_flow on letters (flow, ord, at);
create index letters_at on letters (at) where state = 'dead' and blocks = 0;

create table marks (
  id integer primary key,
  event integer not null,
  flow text not null,
  reason text not null,
  error text not null,
  since integer not null,
  due integer not null,
  tries integer not null,
  token integer not null
) strict;
create index marks_due on marks (flow, reason, due, id);
create index marks_since on marks (reason, since);
create index marks_event on marks (event);

create table limits (name text primary key, idle_at integer not null, state text not null) without rowid, strict;
create index limits_idle on limits (idle_at);
create table limit_pages (
  name text not null, n integer not null, upto integer not null, page text not null, primary key (name, n)
) without rowid, strict;
create table tickets (
  ticket text primary key,
  ord integer not null,
  at integer not null,
  used integer not null,
  limits text not null
) without rowid, strict;
create index tickets_at on tickets (at);
-- Tickets that are not used, under each of their limits.
create table waits (
  name text not null, ord integer not null, at integer not null, ticket text not null, primary key (name, ord)
) without rowid, strict;
create index waits_at on waits (name, at);

create table processes (id text primary key, at integer not null, request integer not null, answer text not null) strict;
create table permits (
  name text not null, process text not null, n integer not null, until integer not null, primary key (name, process)
) without rowid, strict;
create table pauses (flow text primary key, reason text not null, by text not null, since integer not null) without rowid, strict;
create table pressure (flow text primary key, level real not null, at integer not null, raised_at integer not null) without rowid, strict;
-- When a group had its last turn: a number of the counter, and the time.
create table served (
  flow text not null, grp text not null, turn integer not null, at integer not null, primary key (flow, grp)
) without rowid, strict;
create index served_at on served (at);
create table replays (replay text not null, event integer not null, at integer not null, primary key (replay, event)) without rowid, strict;
create index replays_at on replays (at);

create table docs (kind text not null, id text not null, rev integer not null, body blob not null, primary key (kind, id)) strict;
create table audit (id integer primary key, at integer not null, who text not null, what text not null, chain text not null) strict;
