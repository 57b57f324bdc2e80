-- Settles plain runs and claims plain lanes, in one statement. It is the same as `core/settle-and-claim.ts` for lanes that have
-- nothing rare (column `rest`) and no group. For anything else it gives up: it returns no row if it has written nothing, and
-- raises SL002 otherwise. The caller then runs the rules.
create function $function(
  at_time bigint, lock_name text, process_id text, request_number bigint,
  ended_lanes text[], ended_tokens bigint[], ended_requeue boolean[],
  flows text[], slots int[], healths int[], event_caps bigint[], byte_caps bigint[], leases bigint[], scan_starts bigint[],
  wants_fronts boolean, body_budget bigint
) returns table (
  kind int, lane text, key bytea, tenant text, token bigint, due bigint, pos bigint, id text, source text, type text, "time" bigint,
  event_tenant text, subject text, attributes text, arrived bigint, body bytea
) language plpgsql volatile as $body$
#variable_conflict use_column
declare
  v_ended constant int := cardinality(ended_lanes);
  v_now bigint;
  v_base bigint;
  v_drawn int := 0;
  v_settled int := 0;
  v_left int := 0;
  v_rows int;
  v_lines smallint[];
  v_found tid[];
  v_are_early boolean;
  v_are_plain boolean;
  v_bytes bigint;
  v_claims text;
  v_answer text := '';
begin
  -- It never waits long: another transaction may wait for this one, and the rules lock in one order.
  perform set_config('lock_timeout', '500ms', true), pg_advisory_xact_lock(hashtextextended(lock_name, 0));
  perform from processes p where p.id = process_id and p.request < request_number;
  if not found then return; end if;
  v_now := coalesce(at_time, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_base := nextval('numbers');

  -- Runs of one event, after which the lane is empty. A lane that another transaction changes meanwhile is compared again.
  with ended as (
    delete from lanes l using unnest(ended_lanes, ended_tokens) e (lane, token)
    where l.id = e.lane and l.token = e.token and l.lease > v_now and l.waiting = 0 and l.rest is null and l.grp = ''
      and l.run_events = 1 and l.first_pos <= l.upto
    returning l.run, l.id, l.flow, l.key, l.tenant, l.started, l.first_event
  )
  insert into runs (n, parent, lane, flow, key, tenant, kind, reason, started, ended, tries, lapses, events)
  select run, '', id, flow, key, tenant, 'done', '', started, v_now, 0, 0, array[first_event] from ended;
  get diagnostics v_settled = row_count;

  if v_settled < v_ended then
    -- All other runs. The lanes are outside of the lock order now, so this does not wait for them.
    perform from lanes l where l.id = any(ended_lanes) order by l.id for update nowait;
    with ended as (
      select l.row, l.run, l.id, l.flow, l.key, l.tenant, l.started, l.upto, l.first_pos, l.first_event
      from unnest(ended_lanes, ended_tokens) e (lane, token) join lanes l on l.id = e.lane and l.token = e.token
      where l.lease > v_now and l.rest is null and l.grp = ''
    ), taken as (
      delete from places p using ended e where p.lane = e.row and p.rank = 0 and p.pos <= e.upto
      returning p.lane, p.pos, p.event
    ), lists as (
      select t.lane as row, array_agg(t.event order by t.pos) as events from (
        select lane, pos, event from taken union all select row, first_pos, first_event from ended where first_pos <= upto
      ) t group by t.lane
    )
    insert into runs (n, parent, lane, flow, key, tenant, kind, reason, started, ended, tries, lapses, events)
    select e.run, '', e.id, e.flow, e.key, e.tenant, 'done', '', e.started, v_now, 0, 0, coalesce(s.events, '{}')
    from ended e left join lists s on s.row = e.row;
    get diagnostics v_rows = row_count;
    if v_settled + v_rows < v_ended then raise exception 'sluice: not plain' using errcode = 'SL002'; end if;
    delete from lanes l using unnest(ended_lanes, ended_tokens) e (lane, token)
    where l.id = e.lane and l.token = e.token and l.waiting = 0;
    -- The events that came meanwhile wait for their window, or only for the end of the run.
    update lanes l set
      win = w.win, due = w.win, rings = w.win, ticket = v_base + w.n, ring_ticket = v_base + w.n, ring_lease = null, lease = null,
      token = null, run = null, started = null, upto = null, run_events = null, run_bytes = null, run_cap = null,
      first_pos = case when l.first_pos > l.upto then l.first_pos end,
      first_event = case when l.first_pos > l.upto then l.first_event end,
      first_size = case when l.first_pos > l.upto then l.first_size end,
      first_cap = case when l.first_pos > l.upto then l.first_cap end
    from (
      select o.id, e.n - 1 as n, case when e.requeue then v_now when o.win is not null then greatest(o.win, v_now) end as win
      from unnest(ended_lanes, ended_tokens, ended_requeue) with ordinality e (lane, token, requeue, n)
      join lanes o on o.id = e.lane and o.token = e.token
    ) w where l.id = w.id;
    get diagnostics v_left = row_count;
  end if;
  v_drawn := v_ended;

  for i in 1 .. cardinality(flows) loop
    v_claims := null;
    v_lines := array(select b from generate_series(0, 2) b where healths[i] >> b & 1 = 1);
    if slots[i] > 0 and not exists (select from pauses p where p.flow = flows[i]) then
      -- Failing lanes and suspects have slots of their own.
      if exists (select from unnest(v_lines) a (line), lateral (
        select from lanes l where l.flow = flows[i] and l.line = a.line and l.rings <= v_now and l.due <= v_now limit 1
      ) other where a.line > 0) then
        raise exception 'sluice: not plain' using errcode = 'SL002';
      end if;
      for attempt in 1 .. 4 loop
        select array_agg(c.ctid order by c.n), bool_or(c.rings <> c.due or c.ring_ticket <> c.ticket),
          bool_and(c.token is null and c.rest is null and c.grp = '' and c.waiting <= event_caps[i] and c.bytes <= byte_caps[i]),
          sum(c.bytes), string_agg('["' || c.id || '",' || v_base + v_drawn + c.n - 1 || ',' || c.due || ',0]', ',' order by c.n)
        into v_found, v_are_early, v_are_plain, v_bytes, v_claims
        from (
          select f.*, row_number() over () as n from (
            select l.ctid, l.id, l.rings, l.ring_ticket, l.due, l.ticket, l.token, l.rest, l.grp, l.waiting, l.bytes from lanes l
            where l.flow = flows[i] and l.line = 0 and l.rings >= scan_starts[i] and l.rings <= v_now and (l.lease is null or l.lease <= v_now)
            order by l.rings, l.ring_ticket limit slots[i] for update skip locked
          ) f
        ) c;
        exit when v_are_early is not true;
        -- These lanes had a deadline that events have moved back since.
        update lanes l set rings = l.due, ring_ticket = l.ticket, ring_lease = l.lease
        where l.ctid = any(v_found) and (l.rings <> l.due or l.ring_ticket <> l.ticket);
      end loop;
      body_budget := body_budget - coalesce(v_bytes, 0);
      if v_are_early or not v_are_plain or body_budget < 0 then
        raise exception 'sluice: not plain' using errcode = 'SL002';
      end if;
      if v_found is not null then
        -- A claimed lane keeps its position, so this changes no index (decision 12).
        return query with begun as (
          update lanes l set
            token = v_base + v_drawn + c.n - 1, run = v_base + v_drawn + c.n - 1, ticket = v_base + v_drawn + c.n - 1,
            started = v_now, lease = v_now + leases[i], due = v_now + leases[i], upto = l.tail,
            run_events = l.waiting, run_bytes = l.bytes,
            run_cap = case when l.waiting = 1 and l.first_pos is not null then l.first_cap
              else least(l.first_cap, (select min(p.cap) from places p where p.lane = l.row and p.rank = 0)) end,
            waiting = 0, bytes = 0, win = null, cap = null
          from unnest(v_found) with ordinality c (at, n) where l.ctid = c.at
          returning l.id, l.row, l.key, l.tenant, l.token, l.rings, l.run_events, l.first_pos, l.first_event
        )
        select i, b.id, b.key, b.tenant, b.token, b.rings, e.pos, e.id, e.source, e.type, e.time, e.tenant, e.subject, e.attributes,
          e.arrived, e.body
        from begun b left join lateral (
          select p.pos, o.* from (
            select b.first_pos as pos, b.first_event as event where b.first_pos is not null
            union all
            select w.pos, w.event from places w
            where b.run_events > (b.first_pos is not null)::int and w.lane = b.row and w.rank = 0
          ) p cross join lateral (
            select v.id, v.source, v.type, v.time, v.tenant, v.subject, v.attributes, v.arrived, v.body from events v
            where v.seq = p.event and v.purged_hash = '' offset 0
          ) o
        ) e on true;
        v_drawn := v_drawn + cardinality(v_found);
        v_answer := v_answer || case when v_answer = '' then '' else ',' end || v_claims;
      end if;
    end if;
    kind := -i;
    if slots[i] > 0 and cardinality(v_found) = slots[i] and v_claims is not null then due := v_now;
    else
      select min(d.due) into due from (
        -- A lane behind the last of these is due after that one's position.
        select case when count(*) = 8 then least(min(f.due), max(f.rings)) else min(f.due) end as due
        from unnest(v_lines) a (line) cross join lateral (
          select l.due, l.rings from lanes l where l.flow = flows[i] and l.line = a.line
            and l.rings >= case when a.line = 0 then scan_starts[i] else 0 end and (l.rings > v_now or l.lease is null or l.lease <= v_now)
          order by l.rings, l.ring_ticket limit 8
        ) f group by a.line
        union all
        select min(l.lease) from lanes l where l.flow = flows[i] and l.line = any(v_lines) and l.rings <= v_now and l.lease > v_now
      ) d;
    end if;
    token := null;
    if wants_fronts then
      select l.rings into token from lanes l
      where l.flow = flows[i] and l.line = 0 and l.rings >= scan_starts[i] order by l.rings, l.ring_ticket limit 1;
    end if;
    return next;
  end loop;

  update processes p set at = v_now, request = request_number,
    answer = format('{"settled":[%s],"claimed":[%s],"crashed":[]}', array_to_string(array_fill('"ok"'::text, array[v_ended]), ','), v_answer)
  where p.id = process_id;
  kind := 0;
  due := v_now;
  pos := v_left;
  select m.routes into token from meta m;
  return next;
end $body$
