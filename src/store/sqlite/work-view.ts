// This file defines the view `work` for people and their tools: one row for each event and lane, in words that other
// queues use too. It includes what the rows of lanes do not have yet, so that a reader beside the process sees the true
// state.
import type { DatabaseSync } from 'node:sqlite'
import { ENDED_STATUS_SQL } from '../sql/lane-columns.ts'

/** Formats as SQLite writes dates, so that a query can compare with `datetime('now', '-24 hours')`. */
function formatDateSql(millis: string): string {
  return `strftime('%Y-%m-%d %H:%M:%f', ${millis} / 1000.0, 'unixepoch')`
}

/** The third part of a lane's `here`: its newest placements. */
const HERE = `substr(here, instr(here, ';') + 1 + instr(substr(here, instr(here, ';') + 1), ';'))`

/** Runs that began lately may be only in this list of lane,ticket,upto,… entries. The lane's row still says that the
    lane waits. */
const BEGUN = `select b.entry ->> 0 as lane, cast(b.entry ->> 1 as integer) as ticket, cast(b.entry ->> 2 as integer) as upto
    from (select '["' || replace(j.value, ',', '","') || '"]' as entry
      from meta m join json_each('["' || replace(m.value, ';', '","') || '"]') j where m.name = 'begun' and m.value <> '') b`

/** The lanes with a run, and the fields of the run that matter here. The run of a dead letter has the events of the
    dead letter. */
const HELD = `select row, id, here, rest ->> '$.run.state' as state, rest ->> '$.run.tries' as tries,
      rest ->> '$.run.until' as until, rest ->> '$.run.attempts[#-1].error' as error, rest ->> '$.run.rank' as rank,
      rest ->> '$.run.upto' as upto
    from lanes where rest ->> '$.run.letter' = 0
    union all select l.row, l.id, l.here, 'running', 0, null, null, 0, b.upto
    from begun b join lanes l on l.id = b.lane and l.ticket = b.ticket`

/** The placements of the lanes with a run, in pieces as the file has them: pos,event,size,cap of each. */
const LISTS = `select row, 0 as rank, ${HERE} as list from held
    union all select lane, rank, list from places`

/** Live placements up to this position were taken before: the first part of `here` says so after a slash. */
const TAKEN_BEFORE = `iif(h.rank = 0 and instr(h.here, '/') > 0, cast(substr(h.here, instr(h.here, '/') + 1) as integer), 0)`
const POS = `json_extract('[' || lists.list || ']', '$[' || (e.key - 1) || ']')`

/** The events that the runs in `held` took. */
const TAKEN = `select h.id as lane, e.value as seq, h.state, h.tries, h.until, h.error
    from held h
    join lists on lists.row = h.row and lists.rank = h.rank
    join json_each('[' || lists.list || ']') e
    where e.key % 4 = 1 and ${POS} <= h.upto and ${POS} > ${TAKEN_BEFORE}`

/** Runs that ended lately may be missing from `lane_runs`: this lists the events they ended. */
const LATE = `select u.lane, cast(e.value as integer) as seq, min(u.n) as n from runs u join json_each('[' || u.events || ']') e
    where u.n >= (select value from meta where name = 'listed') and u.n > e.value and u.kind <> 'cancelled' group by 1, 2`

/** The number of a run is drawn after those of its events: an event was mostly ended by the next run of its lane. */
const LISTED = `select s.run from lane_runs s join runs u on u.n = s.run
      where s.lane = r.lane and s.run > r.seq and u.kind <> 'cancelled'
      and instr(',' || u.events || ',', ',' || r.seq || ',') > 0 order by s.run limit 1`

const ENDED = `select min(n) from (select (${LISTED}) as n union all select late.n)`

const BURIED = `select d.id from letters d where d.lane = r.lane and instr(d.places, '"event":' || r.seq || ',') > 0 limit 1`

const STATUS = `case
      ${ENDED_STATUS_SQL}
      when r.wiped or l.id is null then 'purged'
      when t.state = 'retrying' then 'failed'
      when t.state is not null then iif(t.state = 'running', 'running', 'pending')
      else 'pending' end`

const ATTEMPTS = `coalesce(d.tries, u.tries + (u.kind in ('done', 'partial')), t.tries + (t.state = 'running'), 0)`

/** A partial run's reason describes its failed part, not the accepted part. */
const LAST_ERROR = `coalesce(d.reason, u.attempts ->> '$[#-1].error', iif(u.kind = 'partial', null, nullif(u.reason, '')),
      t.error)`

const WORK_VIEW = `create view work as
  with routed as (
    select e.seq, e.id, e.source, e.type, e.tenant, e.arrived, e.purged_hash <> '' as wiped, j.value as lane
    from events e join json_each('["' || replace(e.lanes, ',', '","') || '"]') j where e.lanes <> ''
  ), begun as materialized (
    ${BEGUN}
  ), held as materialized (
    ${HELD}
  ), lists as (
    ${LISTS}
  ), taken as materialized (
    ${TAKEN}
  ), late as materialized (
    ${LATE}
  )
  select r.id as event, r.source, r.type as event_type, coalesce(d.flow, u.flow, l.flow) as flow,
    coalesce(d.key, u.key, l.key) as key, r.tenant,
    ${STATUS} as status,
    ${formatDateSql('r.arrived')} as received_at,
    ${formatDateSql("coalesce(iif(d.state = 'dead', d.at, null), iif(d.id is null, u.ended, null))")} as processed_at,
    (iif(d.id is null, u.ended, null) - r.arrived) / 1000.0 as latency_seconds,
    ${ATTEMPTS} as attempts,
    ${LAST_ERROR} as last_error,
    ${formatDateSql(`iif(t.state = 'retrying', t.until, null)`)} as next_retry_at,
    r.lane
  from routed r
  left join late on late.lane = r.lane and late.seq = r.seq
  left join runs u on u.n = (${ENDED})
  left join letters d on (u.n is null or u.kind = 'dead') and d.id = (${BURIED})
  left join lanes l on u.n is null and d.id is null and l.id = r.lane
  left join taken t on l.id is not null and t.lane = r.lane and t.seq = r.seq
  union all
  select e.id, e.source, e.type, m.flow, null, e.tenant,
    iif(m.reason in ('key-failed', 'unknown-flow'), 'unrouted', 'pending'), ${formatDateSql('e.arrived')}, null, null,
    m.tries, nullif(m.error, ''), null, null
  from marks m join events e on e.seq = m.event`

/** `ensureWorkView` creates the view, also in a file of an older release, and replaces an older version of the view. */
export function ensureWorkView(db: DatabaseSync): void {
  const found = db.prepare(`select sql from sqlite_schema where type = 'view' and name = 'work'`).get()?.['sql']
  if (found === undefined) db.exec(WORK_VIEW)
  else if (found !== toStoredSql(WORK_VIEW)) db.exec(`begin immediate; drop view work; ${WORK_VIEW}; commit`)
}

/** `toStoredSql` returns the text as SQLite stores it. */
function toStoredSql(sql: string): string {
  return sql.replace(/^create view/i, 'CREATE VIEW')
}
