-- The view `work` for people and their tools: one row for each event and lane, in words that other queues use too. It includes
-- what the rows of lanes do not have yet, so that a reader beside the process sees the true state. Times are formatted as SQLite
-- writes dates, so that a query can compare with `datetime('now', '-24 hours')`.
create view work as
  with routed as (
    select e.seq, e.id, e.source, e.type, e.tenant, e.arrived, e.purged_hash <> '' as wiped, e.subject, j.value as lane
    from events e join json_each('["' || replace(e.lanes, ',', '","') || '"]') j where e.lanes <> ''
  -- Runs that began lately may be only in this list of lane,ticket,upto,… entries. The lane's row still says that the lane waits.
  ), begun as materialized (
    select b.entry ->> 0 as lane, cast(b.entry ->> 1 as integer) as ticket, cast(b.entry ->> 2 as integer) as upto
    from (select '["' || replace(j.value, ',', '","') || '"]' as entry
      from meta m join json_each('["' || replace(m.value, ';', '","') || '"]') j where m.name = 'begun' and m.value <> '') b
  -- The lanes with a run, and the fields of the run that matter here. The run of a dead letter has the events of the dead letter.
  ), held as materialized (
    select row, id, here, rest ->> '$.run.state' as state, rest ->> '$.run.tries' as tries,
      rest ->> '$.run.until' as until, rest ->> '$.run.attempts[#-1].error' as error, rest ->> '$.run.rank' as rank,
      rest ->> '$.run.upto' as upto
    from lanes where rest ->> '$.run.isDeadLetter' = 0
    union all select l.row, l.id, l.here, 'running', 0, null, null, 0, b.upto
    from begun b join lanes l on l.id = b.lane and l.ticket = b.ticket
  -- The placements of the lanes with a run, in pieces as the file has them: pos,event,size,cap of each. The third part of a
  -- lane's `here` has its newest placements.
  ), lists as (
    select row, 0 as rank, substr(here, instr(here, ';') + 1 + instr(substr(here, instr(here, ';') + 1), ';')) as list from held
    union all select lane, rank, list from places
  -- The events that the runs in `held` took. Live placements up to some position were taken before: the first part of `here`
  -- has that position after a slash.
  ), taken as materialized (
    select h.id as lane, e.value as seq, h.state, h.tries, h.until, h.error
    from held h
    join lists on lists.row = h.row and lists.rank = h.rank
    join json_each('[' || lists.list || ']') e
    where e.key % 4 = 1 and json_extract('[' || lists.list || ']', '$[' || (e.key - 1) || ']') <= h.upto
      and json_extract('[' || lists.list || ']', '$[' || (e.key - 1) || ']') >
        iif(h.rank = 0 and instr(h.here, '/') > 0, cast(substr(h.here, instr(h.here, '/') + 1) as integer), 0)
  -- Runs that ended lately may be missing from `lane_runs`: this lists the events they ended.
  ), late as materialized (
    select u.lane, cast(e.value as integer) as seq, min(u.n) as n from runs u join json_each('[' || u.events || ']') e
    where u.n >= (select value from meta where name = 'listed') and u.n > e.value and u.kind <> 'cancelled' group by 1, 2
  )
  select r.id as event, r.source, r.type as event_type, coalesce(d.flow, u.flow, l.flow) as flow,
    coalesce(d.key, u.key, l.key) as key, r.tenant,
    case
      when d.state = 'dead' then 'dead_letter'
      when d.state = 'queued' then 'pending'
      when d.state is not null then d.state
      when u.kind in ('done', 'partial') then 'completed'
      when u.kind = 'dead' then 'dead_letter'
      when u.kind is not null then u.kind
      when r.wiped or l.id is null then 'purged'
      when t.state = 'retrying' then 'failed'
      when t.state is not null then iif(t.state = 'running', 'running', 'pending')
      else 'pending' end as status,
    strftime('%Y-%m-%d %H:%M:%f', r.arrived / 1000.0, 'unixepoch') as received_at,
    strftime('%Y-%m-%d %H:%M:%f', coalesce(iif(d.state = 'dead', d.at, null), iif(d.id is null, u.ended, null)) / 1000.0,
      'unixepoch') as processed_at,
    (iif(d.id is null, u.ended, null) - r.arrived) / 1000.0 as latency_seconds,
    coalesce(d.tries, u.tries + (u.kind in ('done', 'partial')), t.tries + (t.state = 'running'), 0) as attempts,
    -- A partial run's reason describes its failed part, not the accepted part.
    coalesce(d.reason, u.attempts ->> '$[#-1].error', iif(u.kind = 'partial', null, nullif(u.reason, '')),
      t.error) as last_error,
    strftime('%Y-%m-%d %H:%M:%f', iif(t.state = 'retrying', t.until, null) / 1000.0, 'unixepoch') as next_retry_at,
    r.lane, nullif(r.subject, '') as subject,
    -- The row of the table events that has the request and the body.
    case when not r.wiped then r.seq end as payload_row
  from routed r
  left join late on late.lane = r.lane and late.seq = r.seq
  -- The number of a run is drawn after those of its events: an event was mostly ended by the next run of its lane.
  left join runs u on u.n = (select min(n) from (select (select s.run from lane_runs s join runs u on u.n = s.run
      where s.lane = r.lane and s.run > r.seq and u.kind <> 'cancelled'
      and instr(',' || u.events || ',', ',' || r.seq || ',') > 0 order by s.run limit 1) as n union all select late.n))
  left join letters d on (u.n is null or u.kind = 'dead') and d.id =
    (select d.id from letters d where d.lane = r.lane and instr(d.places, '"event":' || r.seq || ',') > 0 limit 1)
  left join lanes l on u.n is null and d.id is null and l.id = r.lane
  left join taken t on l.id is not null and t.lane = r.lane and t.seq = r.seq
  union all
  select e.id, e.source, e.type, m.flow, null, e.tenant,
    iif(m.reason in ('key-failed', 'schema-failed', 'unknown-flow'), 'unrouted', 'pending'),
    strftime('%Y-%m-%d %H:%M:%f', e.arrived / 1000.0, 'unixepoch'), null, null,
    m.tries, nullif(m.error, ''), null, null, nullif(e.subject, ''), iif(e.purged_hash = '', e.seq, null)
  from marks m join events e on e.seq = m.event
