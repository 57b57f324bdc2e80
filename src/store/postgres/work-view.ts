// `ensureWorkView` creates the view `work`, which people and their tools query: one row for each event and lane, in the words
// that other queues use. Its columns and words are those of the view in an SQLite file.
import { hash } from 'node:crypto'
import { ENDED_STATUS_SQL } from '../sql/lane-columns.ts'
import type { Db } from './row-cache.ts'

function toTimestampSql(millis: string): string {
  return `to_timestamp(${millis} / 1000::double precision)`
}

/**
 * `toJsonbSql` casts our JSON to `jsonb`. PostgreSQL rejects U+0000 and unpaired surrogates, which a truncated text may end
 * with, so the expression replaces them.
 */
function toJsonbSql(column: string): string {
  return `(case when position('\\u' in ${column}) = 0 then ${column}
      else regexp_replace(${column}, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|d[89a-f][0-9a-f]{2})', '\\1?', 'g') end)::jsonb`
}

/**
 * `toKeyTextSql` decodes a key. Keys are bytes that may contain zero bytes, which PostgreSQL text cannot hold, so the
 * expression replaces these.
 */
function toKeyTextSql(key: string): string {
  return `convert_from(case when position('\\x00'::bytea in ${key}) = 0 then ${key}
      else decode(replace(regexp_replace(encode(${key}, 'hex'), '(..)', '\\1 ', 'g'), '00 ', '3f '), 'hex') end, 'UTF8')`
}

/** `unescapeTextSql` reverses `escapeText`; U+0000 becomes a question mark. */
function unescapeTextSql(text: string): string {
  return `replace(replace(${text}, e'\\x010', '?'), e'\\x011', e'\\x01')`
}

/**
 * A run's number is drawn after the numbers of its events. Another process may draw them at the same time and be ahead by at
 * most this many.
 */
const AT_ONCE = 10_000_000

/** The join is by lane and event: the server may look up the runs of one event, or join all of them. */
const joinRunsSql = (u: string): string => `runs ${u} cross join unnest(${u}.events) of_${u} (event)`
const matchRunSql = (u: string): string => `${u}.lane = r.lane and ${u}.n > r.seq - ${AT_ONCE} and of_${u}.event = r.seq
      and r.seq = any (${u}.events) and ${u}.kind <> 'cancelled'`

/** The column `places` holds pos, event and size of each placement, one after the other. */
const joinDeadLettersSql = (d: string): string =>
  `letters ${d} cross join unnest(${d}.places) with ordinality of_${d} (event, n)`
const matchDeadLetterSql = (
  d: string,
): string => `${d}.lane = r.lane and ${d}.ord > r.seq and of_${d}.n % 3 = 2 and of_${d}.event = r.seq
      and r.seq = any (${d}.places)`

/** An event of a purged lane has no placement left in that lane, although another lane may still need the event. */
const IS_PURGED = `r.wiped or l.id is null or (r.doomed and l.first_event is distinct from r.seq
      and not exists (select 1 from places p where p.lane = l.row and p.event = r.seq))`

/** Whether the current run of the lane holds the event. The run of a dead letter holds the events of the dead letter. */
const IS_TAKEN = `coalesce(r.seq = any (t.events), false)`

const STATUS = `case
      ${ENDED_STATUS_SQL}
      when ${IS_PURGED} then 'purged'
      when not ${IS_TAKEN} then 'pending'
      when t.state = 'retrying' then 'failed'
      when t.state = 'running' then 'running'
      else 'pending' end`

const ATTEMPTS = `coalesce(d.tries, u.tries + (u.kind in ('done', 'partial'))::int,
      case when ${IS_TAKEN} then t.tries + (t.state = 'running')::int end, 0)`

/** The reason of a `partial` run belongs to the events that were not accepted. */
const LAST_ERROR = `coalesce(${unescapeTextSql('d.reason')}, ${toJsonbSql('u.attempts')} -> -1 ->> 'error',
      case when u.kind <> 'partial' then nullif(${unescapeTextSql('u.reason')}, '') end,
      case when ${IS_TAKEN} then t.error end)`

const WORK_VIEW = `create or replace view work with (security_invoker = true) as
  select r.id as event, r.source, r.type as event_type, coalesce(d.flow, u.flow, l.flow) as flow,
    ${toKeyTextSql('coalesce(d.key, u.key, l.key)')} as key, r.tenant,
    ${STATUS} as status,
    ${toTimestampSql('r.arrived')} as received_at,
    ${toTimestampSql(`case when d.id is null then u.ended when d.state = 'dead' then d.at end`)} as processed_at,
    case when d.id is null then u.ended - r.arrived end / 1000::double precision as latency_seconds,
    ${ATTEMPTS} as attempts,
    ${LAST_ERROR} as last_error,
    ${toTimestampSql(`case when ${IS_TAKEN} and t.state = 'retrying' then t.until end`)} as next_retry_at,
    r.lane
  from (
    select e.seq, e.id, e.source, e.type, e.tenant, e.arrived, e.purged_hash <> '' as wiped, e.doomed, j.lane
    from events e cross join unnest(e.lanes) j (lane)
  ) r
  left join (${joinRunsSql('u')}) on ${matchRunSql('u')}
  left join (${joinDeadLettersSql('d')}) on (u.n is null or u.kind = 'dead') and ${matchDeadLetterSql('d')}
  -- Looked at once for a lane, however many wait in it.
  left join (lanes l left join lateral (
    select run.state, run.tries, run.until, run.attempts -> -1 ->> 'error' as error,
      array(select p.event from places p where p.lane = l.row and p.rank = run.rank and p.pos <= run.upto)
        || case when run.rank = 0 and l.first_pos <= run.upto then l.first_event end as events
    from jsonb_to_record(${toJsonbSql('l.rest')} -> 'run') as run
      (state text, rank int, upto bigint, letter boolean, tries int, until bigint, attempts jsonb)
    where not run.letter offset 0
  ) t on l.rest is not null) on u.n is null and d.id is null and l.id = r.lane
  -- A lane that belongs to another tenant is not seen: nobody is told then what became of the event in it.
  where ((select sees_every_tenant()) or d.id is not null or u.n is not null or l.id is not null or r.wiped)
    -- What ended it is the first that had it: a replay changes nothing.
    and not exists (select 1 from ${joinRunsSql('b')} where ${matchRunSql('b')} and b.n < u.n)
    and not exists (select 1 from ${joinDeadLettersSql('c')} where ${matchDeadLetterSql('c')} and c.ord < d.ord)
  union all
  select e.id, e.source, e.type, m.flow, null, e.tenant,
    case when m.reason in ('key-failed', 'unknown-flow') then 'unrouted' else 'pending' end, ${toTimestampSql('e.arrived')}, null, null,
    m.tries, nullif(${unescapeTextSql('m.error')}, ''), null, null
  from marks m join events e on e.seq = m.event`

const VIEW_COMMENT = `one row for each event and lane; docs/operate/monitor.md (${hash('sha256', WORK_VIEW).slice(0, 16)})`

/**
 * A reader may lock the view for any length of time. Then the view stays as it is until a store is opened again, and no process
 * waits.
 */
const CREATE_VIEW = `do $make$ begin
  set local lock_timeout = '1s';
  begin
    ${WORK_VIEW};
  exception when invalid_table_definition then
    drop view work;
    ${WORK_VIEW};
  end;
  comment on view work is '${VIEW_COMMENT}';
exception when lock_not_available then null;
end $make$`

const FOUND = `select obj_description(to_regclass('work'), 'pg_class') is not distinct from $1`

/**
 * `ensureWorkView` runs inside the migration and also replaces the view of an older release. It returns whether it created the
 * view.
 */
export async function ensureWorkView(db: Db, script: (sql: string) => Promise<void>): Promise<boolean> {
  const [found] = await db.query(FOUND, [VIEW_COMMENT])
  if (found?.[0] === true) return false
  await script(CREATE_VIEW)
  return true
}
