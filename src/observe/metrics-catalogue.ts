// Every metric of the engine by name, with what it means. No key, tenant or id is a label.
import { Histogram, Numbers, type Series } from './metrics-series.ts'

const MOMENTS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const WAITS: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600]
const LATENCIES: readonly number[] = [
  0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400,
]
const SIZES: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

function counter(name: string, help: string, ...labels: readonly string[]): Numbers {
  return new Numbers('counter', { name: `sluice_${name}_total`, help, labels })
}

function gauge(name: string, help: string, ...labels: readonly string[]): Numbers {
  return new Numbers('gauge', { name: `sluice_${name}`, help, labels })
}

function histogram(name: string, help: string, bounds: readonly number[], ...labels: readonly string[]): Histogram {
  return new Histogram({ name: `sluice_${name}`, help, labels }, bounds)
}

/** Of this process, since it began. */
export class Counted {
  readonly received: Numbers = counter('events_received', 'Events stored.', 'source')
  readonly duplicates: Numbers = counter('events_duplicate', 'Events that were known already.', 'source')
  readonly conflicts: Numbers = counter(
    'events_conflict',
    'Events kept out: a known identity, other content.',
    'source',
  )
  readonly refusedEvents: Numbers = counter('events_refused', 'Events the store could not take.', 'source', 'reason')
  readonly skipped: Numbers = counter('events_skipped', 'Events in which a flow found no key.', 'flow')
  readonly unrouted: Numbers = counter('events_unrouted', 'Events that could not be placed at once.', 'flow', 'reason')
  readonly lateness: Histogram = histogram('lateness_seconds', 'From deadline to turn.', WAITS, 'flow')
  readonly attempts: Numbers = counter('attempts', 'Attempts by how they ended.', 'flow', 'ending')
  readonly reruns: Numbers = counter('reruns', 'Runs for events that came during the run before.', 'flow')
  readonly runEvents: Histogram = histogram('run_events', 'Events of a run that ended.', SIZES, 'flow')
  readonly doneAfter: Histogram = histogram('arrival_to_done_seconds', 'From arrival to done.', LATENCIES, 'flow')
  readonly deadLetters: Numbers = counter('dead_letters', 'Runs that became dead letters.', 'flow')
  readonly limitWaits: Histogram = histogram('limit_wait_seconds', 'Waits for a slot, as granted.', WAITS, 'limit')
  readonly limitCalls: Numbers = counter('limit_calls', 'Calls that got their slot.', 'limit')
  readonly limitPutOffs: Numbers = counter('limit_put_off', 'Slots that were too far away.', 'limit')
  readonly limitRefusals: Numbers = counter('limit_refused', 'Answers 429, 503 or 529 that paused it.', 'limit')
  readonly storeTook: Histogram = histogram('store_seconds', 'Time of a call to the store.', MOMENTS, 'member')
  readonly storeFailures: Numbers = counter('store_failures', 'Calls to the store that failed.', 'member')
  readonly loopLag: Histogram = histogram('event_loop_lag_seconds', 'How late a timer was.', MOMENTS)
  readonly refusedKeys: Numbers = counter('keys_refused', 'Calls of the API with a key that nobody has.')
  readonly apiFailures: Numbers = counter('api_failures', 'Calls of the API answered with API_FAILED.')
  readonly alerts: Numbers = counter('alerts_raised', 'Alerts by the first part of their name.', 'alert')

  get all(): readonly Series[] {
    return Object.values(this) as readonly Series[]
  }
}

/** As things are now, over all processes: looked up when somebody asks. */
export class Looked {
  readonly up: Numbers = gauge('store_up', '1 if the store answers.')
  readonly refusedRequests: Numbers = counter('requests_refused', 'Requests refused.', 'source', 'reason')
  readonly lanes: Numbers = gauge('lanes', 'Lanes by state.', 'flow', 'state')
  readonly depth: Numbers = gauge('depth_events', 'Events that wait, or failed and wait.', 'flow', 'state')
  readonly oldest: Numbers = gauge('oldest_ready_seconds', 'How long the first of the line has been due.', 'flow')
  readonly paused: Numbers = gauge('flow_paused', '1 while the flow is paused.', 'flow')
  readonly letters: Numbers = gauge('dead_letters_kept', 'Dead letters there are.')
  readonly marks: Numbers = gauge('unrouted_events', 'Events that wait for a place.', 'reason')
  readonly limitPaused: Numbers = gauge('limit_paused_seconds', 'How long the limit is still paused.', 'limit')
  readonly limitBusy: Numbers = gauge('limit_busy_seconds', 'How long the last who wants a slot waits.', 'limit')
  readonly bytes: Numbers = gauge('store_bytes', 'What the store takes.')
  readonly room: Numbers = gauge('store_limit_bytes', 'What the store may take; not there if unbounded.')
  readonly diskUsed: Numbers = gauge('store_disk_used_ratio', "How full the disk of the store's file is, 0 to 1.")
  readonly deadRows: Numbers = gauge('store_dead_rows', 'Rows to be cleared away; PostgreSQL only.', 'table')
  readonly oldestSnapshot: Numbers = gauge(
    'store_oldest_snapshot_seconds',
    'Age of the oldest open transaction or snapshot; PostgreSQL only.',
  )
  readonly clockOffset: Numbers = gauge('clock_offset_seconds', "The store's clock ahead of this machine's.")

  get all(): readonly Series[] {
    return Object.values(this) as readonly Series[]
  }
}
