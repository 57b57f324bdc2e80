// A table for people and their tools to ask: one row for each event and lane, in words that other queues use too. The same
// columns and words as in a file of SQLite.
import { hash } from 'node:crypto'
import { ENDED_WORDS } from '../rules/work-words.ts'
import type { Db } from './part.ts'

function moment(millis: string): string {
  return `to_timestamp(${millis} / 1000::double precision)`
}

/** JSON of ours as the server reads it: it refuses U+0000 and halves of a pair, which a text that was cut may end with. */
function json(column: string): string {
  return `(case when position('\\u' in ${column}) = 0 then ${column}
      else regexp_replace(${column}, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|d[89a-f][0-9a-f]{2})', '\\1?', 'g') end)::jsonb`
}

/** Keys are bytes that may have a zero among them, which no text has here. */
function keyText(key: string): string {
  return `convert_from(case when position('\\x00'::bytea in ${key}) = 0 then ${key}
      else decode(replace(regexp_replace(encode(${key}, 'hex'), '(..)', '\\1 ', 'g'), '00 ', '3f '), 'hex') end, 'UTF8')`
}

/** Of text that was escaped to be kept. */
function plain(text: string): string {
  return `replace(replace(${text}, e'\\x010', '?'), e'\\x011', e'\\x01')`
}

/**
 * The number of a run is drawn after those of its events, or at the same moment by another process, which may have drawn so
 * many by then.
 */
const AT_ONCE = 10_000_000

/** By lane and event: the server may look up those of one event, or hold all against each other. */
const runs = (u: string): string => `runs ${u} cross join unnest(${u}.events) of_${u} (event)`
const hadIt = (u: string): string => `${u}.lane = r.lane and ${u}.n > r.seq - ${AT_ONCE} and of_${u}.event = r.seq
      and r.seq = any (${u}.events) and ${u}.kind <> 'cancelled'`

/** pos, event, size of each place. */
const letters = (d: string): string => `letters ${d} cross join unnest(${d}.places) with ordinality of_${d} (event, n)`
const hasIt = (
  d: string,
): string => `${d}.lane = r.lane and ${d}.ord > r.seq and of_${d}.n % 3 = 2 and of_${d}.event = r.seq
      and r.seq = any (${d}.places)`

/** Nothing of a purged lane is left in it, though another lane may need the event still. */
const IS_PURGED = `r.wiped or l.id is null or (r.doomed and l.first_event is distinct from r.seq
      and not exists (select 1 from places p where p.lane = l.row and p.event = r.seq))`

/** In the run that is in its lane. That of a dead letter has those of the letter. */
const IS_TAKEN = `coalesce(r.seq = any (t.events), false)`

const STATUS = `case
      ${ENDED_WORDS}
      when ${IS_PURGED} then 'purged'
      when not ${IS_TAKEN} then 'pending'
      when t.state = 'retrying' then 'failed'
      when t.state = 'running' then 'running'
      else 'pending' end`

const ATTEMPTS = `coalesce(d.tries, u.tries + (u.kind in ('done', 'partial'))::int,
      case when ${IS_TAKEN} then t.tries + (t.state = 'running')::int end, 0)`

/** The reason of a part that was accepted is that of the others. */
const LAST_ERROR = `coalesce(${plain('d.reason')}, ${json('u.attempts')} -> -1 ->> 'error',
      case when u.kind <> 'partial' then nullif(${plain('u.reason')}, '') end,
      case when ${IS_TAKEN} then t.error end)`

const WORK_VIEW = `create or replace view work with (security_invoker = true) as
  select r.id as event, r.source, r.type as event_type, coalesce(d.flow, u.flow, l.flow) as flow,
    ${keyText('coalesce(d.key, u.key, l.key)')} as key, r.tenant,
    ${STATUS} as status,
    ${moment('r.arrived')} as received_at,
    ${moment(`case when d.id is null then u.ended when d.state = 'dead' then d.at end`)} as processed_at,
    case when d.id is null then u.ended - r.arrived end / 1000::double precision as latency_seconds,
    ${ATTEMPTS} as attempts,
    ${LAST_ERROR} as last_error,
    ${moment(`case when ${IS_TAKEN} and t.state = 'retrying' then t.until end`)} as next_retry_at,
    r.lane
  from (
    select e.seq, e.id, e.source, e.type, e.tenant, e.arrived, e.purged_hash <> '' as wiped, e.doomed, j.lane
    from events e cross join unnest(e.lanes) j (lane)
  ) r
  left join (${runs('u')}) on ${hadIt('u')}
  left join (${letters('d')}) on (u.n is null or u.kind = 'dead') and ${hasIt('d')}
  -- Looked at once for a lane, however many wait in it.
  left join (lanes l left join lateral (
    select run.state, run.tries, run.until, run.attempts -> -1 ->> 'error' as error,
      array(select p.event from places p where p.lane = l.row and p.rank = run.rank and p.pos <= run.upto)
        || case when run.rank = 0 and l.first_pos <= run.upto then l.first_event end as events
    from jsonb_to_record(${json('l.rest')} -> 'run') as run
      (state text, rank int, upto bigint, letter boolean, tries int, until bigint, attempts jsonb)
    where not run.letter offset 0
  ) t on l.rest is not null) on u.n is null and d.id is null and l.id = r.lane
  -- A lane that belongs to another tenant is not seen: nobody is told then what became of the event in it.
  where ((select sees_every_tenant()) or d.id is not null or u.n is not null or l.id is not null or r.wiped)
    -- What ended it is the first that had it: a replay changes nothing.
    and not exists (select 1 from ${runs('b')} where ${hadIt('b')} and b.n < u.n)
    and not exists (select 1 from ${letters('c')} where ${hasIt('c')} and c.ord < d.ord)
  union all
  select e.id, e.source, e.type, m.flow, null, e.tenant,
    case when m.reason in ('key-failed', 'unknown-flow') then 'unrouted' else 'pending' end, ${moment('e.arrived')}, null, null,
    m.tries, nullif(${plain('m.error')}, ''), null, null
  from marks m join events e on e.seq = m.event`

const MARK = `one row for each event and lane; docs/operate/monitor.md (${hash('sha256', WORK_VIEW).slice(0, 16)})`

/**
 * Somebody who reads it may have it locked, for as long as he likes: then it stays as it is until a store is opened again,
 * and nobody waits.
 */
const MAKE = `do $make$ begin
  set local lock_timeout = '1s';
  begin
    ${WORK_VIEW};
  exception when invalid_table_definition then
    drop view work;
    ${WORK_VIEW};
  end;
  comment on view work is '${MARK}';
exception when lock_not_available then null;
end $make$`

const FOUND = `select obj_description(to_regclass('work'), 'pg_class') is not distinct from $1`

/** Inside the migration: also in a schema that has it as an older release wrote it. Answers whether it was made. */
export async function keepWorkView(db: Db, script: (sql: string) => Promise<void>): Promise<boolean> {
  const [found] = await db.rows(FOUND, [MARK])
  if (found?.[0] === true) return false
  await script(MAKE)
  return true
}
