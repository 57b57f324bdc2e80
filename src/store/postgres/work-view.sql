-- The view `work`, which people and their tools query: one row for each event and lane, in the words that other queues use. Its
-- columns and words are those of the view in an SQLite file. Our texts escape U+0000 and U+0001; the view shows U+0000 as a
-- question mark.
create or replace view work with (security_invoker = true) as
  select r.id as event, r.source, r.type as event_type, coalesce(d.flow, u.flow, l.flow) as flow,
    -- Keys are bytes that may contain zero bytes, which a text cannot hold.
    convert_from(case when position('\x00'::bytea in coalesce(d.key, u.key, l.key)) = 0
      then coalesce(d.key, u.key, l.key)
      else decode(replace(regexp_replace(encode(coalesce(d.key, u.key, l.key), 'hex'), '(..)', '\1 ', 'g'), '00 ', '3f '), 'hex')
      end, 'UTF8') as key, r.tenant,
    case
      when d.state = 'dead' then 'dead_letter'
      when d.state = 'queued' then 'pending'
      when d.state is not null then d.state
      when u.kind in ('done', 'partial') then 'completed'
      when u.kind = 'dead' then 'dead_letter'
      when u.kind is not null then u.kind
      -- An event of a purged lane has no placement left in that lane, although another lane may still need the event.
      when r.wiped or l.id is null or (r.doomed and l.first_event is distinct from r.seq
      and not exists (select 1 from places p where p.lane = l.row and p.event = r.seq)) then 'purged'
      -- The current run of the lane may hold the event. The run of a dead letter holds the events of the dead letter.
      when not coalesce(r.seq = any (t.events), false) then 'pending'
      when t.state = 'retrying' then 'failed'
      when t.state = 'running' then 'running'
      else 'pending' end as status,
    to_timestamp(r.arrived / 1000::double precision) as received_at,
    to_timestamp(case when d.id is null then u.ended when d.state = 'dead' then d.at end / 1000::double precision) as processed_at,
    case when d.id is null then u.ended - r.arrived end / 1000::double precision as latency_seconds,
    coalesce(d.tries, u.tries + (u.kind in ('done', 'partial'))::int,
      case when coalesce(r.seq = any (t.events), false) then t.tries + (t.state = 'running')::int end, 0) as attempts,
    -- PostgreSQL rejects U+0000 and unpaired surrogates in `jsonb`, which a truncated text may end with. The reason of a partial
    -- run belongs to the events that were not accepted.
    coalesce(replace(replace(d.reason, e'\x010', '?'), e'\x011', e'\x01'), (case when position('\u' in u.attempts) = 0 then u.attempts
      else regexp_replace(u.attempts, '(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})', '\1?', 'g') end)::jsonb -> -1 ->> 'error',
      case when u.kind <> 'partial' then nullif(replace(replace(u.reason, e'\x010', '?'), e'\x011', e'\x01'), '') end,
      case when coalesce(r.seq = any (t.events), false) then t.error end) as last_error,
    to_timestamp(case when coalesce(r.seq = any (t.events), false) and t.state = 'retrying' then t.until end / 1000::double precision) as next_retry_at,
    r.lane, nullif(replace(replace(r.subject, e'\x010', '?'), e'\x011', e'\x01'), '') as subject,
    -- The row of the table events that has the request and the body.
    case when not r.wiped then r.seq end as payload_row
  from (
    select e.seq, e.id, e.source, e.type, e.tenant, e.arrived, e.purged_hash <> '' as wiped, e.doomed, e.subject, j.lane
    from events e cross join unnest(e.lanes) j (lane)
  ) r
  -- The join is by lane and event: the server may look up the runs of one event, or join all of them. A run's number is drawn
  -- after the numbers of its events. Another process may draw them at the same time and be ahead by at most 10,000,000.
  left join (runs u cross join unnest(u.events) of_u (event)) on u.lane = r.lane and u.n > r.seq - 10000000 and of_u.event = r.seq
      and r.seq = any (u.events) and u.kind <> 'cancelled'
  -- The column `places` holds pos, event and size of each placement, one after the other.
  left join (letters d cross join unnest(d.places) with ordinality of_d (event, n))
    on (u.n is null or u.kind = 'dead') and d.lane = r.lane and d.ord > r.seq and of_d.n % 3 = 2 and of_d.event = r.seq
      and r.seq = any (d.places)
  -- Looked at once for a lane, however many wait in it.
  left join (lanes l left join lateral (
    select run.state, run.tries, run.until, run.attempts -> -1 ->> 'error' as error,
      array(select p.event from places p where p.lane = l.row and p.rank = run.rank and p.pos <= run.upto)
        || case when run.rank = 0 and l.first_pos <= run.upto then l.first_event end as events
    from jsonb_to_record((case when position('\u' in l.rest) = 0 then l.rest
      else regexp_replace(l.rest, '(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})', '\1?', 'g') end)::jsonb -> 'run') as run
      (state text, rank int, upto bigint, "isDeadLetter" boolean, tries int, until bigint, attempts jsonb)
    where not run."isDeadLetter"
    union all
    select 'running', 0, l.lease, null, array(select p.event from places p where p.lane = l.row and p.rank = 0 and p.pos <= l.upto)
      || case when l.first_pos <= l.upto then l.first_event end
    where l.token is not null offset 0
  ) t on l.rest is not null or l.token is not null) on u.n is null and d.id is null and l.id = r.lane
  -- A lane that belongs to another tenant is not seen: nobody is told then what became of the event in it.
  where ((select sees_every_tenant()) or d.id is not null or u.n is not null or l.id is not null or r.wiped)
    -- What ended it is the first that had it: a replay changes nothing.
    and not exists (select 1 from runs b cross join unnest(b.events) of_b (event)
      where b.lane = r.lane and b.n > r.seq - 10000000 and of_b.event = r.seq
      and r.seq = any (b.events) and b.kind <> 'cancelled' and b.n < u.n)
    and not exists (select 1 from letters c cross join unnest(c.places) with ordinality of_c (event, n)
      where c.lane = r.lane and c.ord > r.seq and of_c.n % 3 = 2 and of_c.event = r.seq
      and r.seq = any (c.places) and c.ord < d.ord)
  union all
  select e.id, e.source, e.type, m.flow, null, e.tenant,
    case when m.reason in ('key-failed', 'schema-failed', 'unknown-flow') then 'unrouted' else 'pending' end,
    to_timestamp(e.arrived / 1000::double precision), null, null,
    m.tries, nullif(replace(replace(m.error, e'\x010', '?'), e'\x011', e'\x01'), ''), null, null,
    nullif(replace(replace(e.subject, e'\x010', '?'), e'\x011', e'\x01'), ''), case when e.purged_hash = '' then e.seq end
  from marks m join events e on e.seq = m.event
