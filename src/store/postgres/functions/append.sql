-- Stores arriving events with their placements, in one statement. It is the same as `core/append.ts` and `model/place.ts` for events
-- that are new, and for lanes that have no hold, no remembered run and no replays. For anything else it raises an error, most
-- often because a row that it inserts exists. The caller then runs the rules.

-- The end of the window after `events` have joined those that wait (L3, L4). The first of them alone may fill it.
create function $function_window(
  waiting int, win bigint, bytes bigint, cap bigint,
  events int, size bigint, first_size int, quiet bigint, longest bigint, max_events bigint, max_bytes bigint, now bigint
) returns bigint language sql immutable as $body$
  select case
    when waiting > 0 and win <= now then win
    when waiting + 1 >= max_events or bytes + first_size >= max_bytes then now
    when least(now + quiet, now + longest, cap) <= now then least(now + quiet, now + longest, cap)
    when waiting + events >= max_events or bytes + size >= max_bytes then now
    else least(now + quiet, now + longest, cap)
  end
$body$;

create function $function(
  at_time bigint, lock_name text, known_routes bigint, numbers int, arrivals $add_events[], arriving $arriving_lanes[],
  placed_lanes bigint[], placed_events bigint[], placed_nths bigint[], placed_sizes bigint[], grown bigint
) returns table (now bigint, epoch bigint, opened bigint[], sooner bigint[]) language plpgsql volatile as $body$
#variable_conflict use_column
declare
  v_now bigint;
  v_epoch bigint;
  -- Number n of the call is v_blocks[n / 1000 + 1] + n % 1000.
  v_blocks bigint[];
  v_opened bigint[];
  v_sooner bigint[];
  v_fills boolean;
begin
  -- It never waits long: another transaction may wait for this one, and the rules lock in one order.
  perform set_config('lock_timeout', '500ms', true), pg_advisory_xact_lock_shared(hashtextextended(lock_name, 0));
  select m.routes into v_epoch from meta m;
  v_now := coalesce(at_time, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  if known_routes < v_epoch then
    return query select v_now, v_epoch, null::bigint[], null::bigint[];
    return;
  end if;
  v_blocks := array(select nextval('numbers') from generate_series(0, (numbers - 1) / 1000));

  -- Lanes are in the order of their ids, the order in which every transaction locks.
  with coming as materialized (
    select a.*, v_blocks[a.n / 1000 + 1] + a.n % 1000 as ticket, v_blocks[a.first_event / 1000 + 1] + a.first_event % 1000 as event
    from unnest(arriving) a
  ), joined as (
    update lanes l set
      tail = l.tail + c.events, waiting = l.waiting + c.events, bytes = l.bytes + c.size, cap = least(l.cap, v_now + c.longest),
      first_pos = coalesce(l.first_pos, l.tail + 1), first_event = coalesce(l.first_event, c.event),
      first_size = coalesce(l.first_size, c.first_size), first_cap = coalesce(l.first_cap, v_now + c.longest, 9007199254740991),
      -- The position never moves back, so most updates change no index. A deadline that moves forward takes it along.
      (win, due, ticket, rings, ring_ticket) = (
        select w.at,
          case when w.is_set then l.due else w.at end,
          case when w.is_set or w.at is not distinct from l.due then l.ticket else c.ticket end,
          case when w.is_set or w.at is not distinct from l.due or (l.grp = '' and w.at > l.due) then l.rings else w.at end,
          case when w.is_set or w.at is not distinct from l.due or (l.grp = '' and w.at > l.due) then l.ring_ticket else c.ticket end
        from (
          select $function_window(l.waiting, l.win, l.bytes, l.cap, c.events, c.size, c.first_size, c.quiet, c.longest,
            c.max_events, c.max_bytes, v_now) as at, l.pinned or l.token is not null as is_set offset 0
        ) w
      )
    from coming c where not c.is_new and l.id = c.id
      and (l.rest is null or l.pinned or l.token is not null)
      -- A run that could be cancelled remembers that events asked for it, or that they fill a window with its own.
      and (l.token is null or not c.cancels and l.waiting + c.events + l.run_events < c.max_events
        and l.bytes + c.size + l.run_bytes < c.max_bytes)
    returning c.n, c.events, c.event, c.size, c.longest, l.row, l.tail, l.first_event, l.ring_ticket = c.ticket as is_sooner,
      not l.pinned and l.token is null and c.events > 1 and (
        l.waiting >= c.max_events and l.waiting - c.events + 1 < c.max_events
        or l.bytes >= c.max_bytes and l.bytes - c.size + c.first_size < c.max_bytes
      ) as fills
  ), fresh as (
    select c.*, $function_window(0, null, 0, null, c.events, c.size, c.first_size, c.quiet, c.longest, c.max_events, c.max_bytes, v_now) as at,
      c.events > 1 and (c.max_events between 2 and c.events or c.first_size < c.max_bytes and c.size >= c.max_bytes) as fills
    from coming c where c.is_new or not exists (select from joined j where j.n = c.n)
  ), added as (
    insert into lanes (
      id, row, flow, key, tenant, grp, tail, waiting, bytes, win, cap, due, ticket, line, rings, ring_ticket,
      first_pos, first_event, first_size, first_cap
    )
    select id, ticket, flow, key, tenant, grp, events, events, size, at, v_now + longest, at, ticket, 0, at, ticket,
      1, event, first_size, coalesce(v_now + longest, 9007199254740991)
    from fresh order by id
  ), placed as (
    -- The lane's row has one placement. The others are in the table.
    insert into places (lane, rank, pos, event, size, cap)
    select row, 0, tail, event, size, coalesce(v_now + longest, 9007199254740991)
    from joined where events = 1 and event <> first_event
    union all
    select o.row, 0, o.tail - o.events + e.nth, e.event, e.size, coalesce(v_now + o.longest, 9007199254740991)
    from (
      select lane, nth, size, v_blocks[event / 1000 + 1] + event % 1000 as event
      from unnest(placed_lanes, placed_events, placed_nths, placed_sizes) e (lane, event, nth, size)
    ) e join (
      select n, events, row, tail, first_event, longest from joined
      union all
      select n, events, ticket, events, event, longest from fresh
    ) o on o.n = e.lane
    where e.event <> o.first_event
  )
  select array(select n from fresh), array(select n from joined where is_sooner),
    exists (select from joined where fills union all select from fresh where fills) into v_opened, v_sooner, v_fills;
  -- A lane that a later event fills draws its ticket at that event (L5). Tickets here follow the first event of each lane.
  if v_fills and cardinality(arriving) > 1 then raise exception 'sluice: gives up' using errcode = 'SL002'; end if;

  insert into events (
    seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes, skips, size, request, body
  )
  select v_blocks[seq / 1000 + 1] + seq % 1000, id, identity, least(v_now + dedupe_until, 9007199254740991), source, type, time, tenant,
    subject, attributes, v_now, lanes, skips, size, request, body
  from unnest(arrivals);
  if grown < 0 then raise exception 'sluice: gives up' using errcode = 'SL002'; end if;
  if grown > 0 then
    update stored_bytes set bytes = bytes + grown where stripe = pg_backend_pid() % 16;
  end if;
  return query select v_now, v_epoch, v_opened, v_sooner;
end $body$
