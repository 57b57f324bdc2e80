// The figures of the design's section on observability, each from where the engine keeps it.
import type { Millis, Sluice } from 'sluice'

const FLOW = 'rank-user'

export interface UserFigures {
  readonly user: string
  /** Events that wait, or are being worked on. */
  readonly depth: number
  /** Undefined: nothing waits. Negative: it is ready, and has been for so long. */
  readonly readyIn: Millis | undefined
  /** Of the last run, from its first attempt to its end. */
  readonly processing: Millis | undefined
  readonly runs: number
  /** Those that had to be since events came while the one before was on. */
  readonly reruns: number
}

/** As far back as a page of the records goes: the last hundred. */
export async function figuresOf(app: Sluice, user: string, now: Millis): Promise<UserFigures> {
  const of = { flow: FLOW, key: user }
  const lane = await app.admin.lanes.get(FLOW, user)
  const { items: runs } = await app.admin.runs.list(of)
  const arrivals = new Map((await app.admin.events.list(of)).items.map(({ id, arrived }) => [id, arrived]))
  const firstOf = (events: readonly string[]): Millis => Math.min(...events.map((id) => arrivals.get(id) ?? Infinity))
  const [last] = runs
  return {
    user,
    depth: (lane?.waiting ?? 0) + (lane?.run?.events ?? 0),
    readyIn: lane === undefined ? undefined : lane.due - now,
    processing: last === undefined ? undefined : last.ended - last.started,
    runs: runs.length,
    reruns: runs.filter(({ events }, at) => firstOf(events) < (runs[at + 1]?.ended ?? -Infinity)).length,
  }
}

/** Of all users: which metric of the engine each figure is. */
export const GLOBAL_FIGURES = {
  'users in line': 'sluice_lanes{flow="rank-user",state="ready"}',
  'events waiting': 'sluice_depth_events{flow="rank-user",state="waiting"}',
  'waits for a slot, in seconds': 'sluice_limit_wait_seconds_sum{limit="notion-api"}',
  'calls (rate() of it is the RPS)': 'sluice_limit_calls_total{limit="notion-api"}',
  'refusals (429, 529)': 'sluice_limit_refused_total{limit="notion-api"}',
  reruns: 'sluice_reruns_total{flow="rank-user"}',
  'failed attempts': 'sluice_attempts_total{flow="rank-user",ending="retry"}',
  'dead letters': 'sluice_dead_letters_total{flow="rank-user"}',
  'skipped: nobody assigned': 'sluice_events_skipped_total{flow="rank-user"}',
  'skipped: our own writes, and pages elsewhere': 'sluice_events_skipped_total{flow="read-page"}',
} as const

export async function globalFigures(app: Sluice): Promise<ReadonlyMap<string, number>> {
  const text = await app.admin.metrics()
  const values = new Map(
    text.split('\n').map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  )
  return new Map(Object.entries(GLOBAL_FIGURES).map(([name, metric]) => [name, values.get(metric) ?? 0]))
}
