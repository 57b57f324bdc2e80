// Every metric of the engine with its name and help text. No label contains a key, a tenant or an id.
import { Histogram, NumberSeries, type Counter, type Gauge, type Series } from './series.ts'

const CALL_BUCKETS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const WAIT_BUCKETS: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600]
const LATENCY_BUCKETS: readonly number[] = [
  0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400,
]
const SIZE_BUCKETS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

function counter(name: string, help: string, ...labels: readonly string[]): Counter {
  return new NumberSeries('counter', { name: `sluice_${name}_total`, help, labels })
}

function gauge(name: string, help: string, ...labels: readonly string[]): Gauge {
  return new NumberSeries('gauge', { name: `sluice_${name}`, help, labels })
}

function histogram(name: string, help: string, bounds: readonly number[], ...labels: readonly string[]): Histogram {
  return new Histogram({ name: `sluice_${name}`, help, labels }, bounds)
}

/** `ProcessMetrics` counts what this process did since it started. */
export class ProcessMetrics {
  readonly received: Counter = counter('events_received', 'Events stored.', 'source')
  readonly duplicates: Counter = counter('events_duplicate', 'Events that were stored before.', 'source')
  readonly conflicts: Counter = counter(
    'events_conflict',
    'Events rejected because a stored event has the same identity and other bytes.',
    'source',
  )
  readonly refusedEvents: Counter = counter(
    'events_refused',
    'Events that the store could not store.',
    'source',
    'reason',
  )
  readonly skipped: Counter = counter('events_skipped', 'Events for which a flow returned no key.', 'flow')
  readonly unrouted: Counter = counter('events_unrouted', 'Events that became unrouted.', 'flow', 'reason')
  readonly lateness: Histogram = histogram(
    'lateness_seconds',
    'Time from the deadline of a lane to its claim.',
    WAIT_BUCKETS,
    'flow',
  )
  readonly attempts: Counter = counter('attempts', 'Ended attempts.', 'flow', 'ending')
  readonly followUpRuns: Counter = counter(
    'reruns',
    'Runs for events that arrived during the previous run of the lane.',
    'flow',
  )
  readonly runEvents: Histogram = histogram('run_events', 'Events per ended run.', SIZE_BUCKETS, 'flow')
  readonly counts: Counter = counter('counts', 'What handlers counted with run.count.', 'flow', 'name')
  readonly arrivalToDone: Histogram = histogram(
    'arrival_to_done_seconds',
    'Time from the arrival of an event to the end of its run.',
    LATENCY_BUCKETS,
    'flow',
  )
  readonly deliveries: Counter = counter('deliveries', 'POSTs of deliveries by how they ended.', 'flow', 'outcome')
  readonly deadLetters: Counter = counter('dead_letters', 'Runs that became dead letters.', 'flow')
  readonly limitWaits: Histogram = histogram(
    'limit_wait_seconds',
    'Time that a call waited for its slot.',
    WAIT_BUCKETS,
    'limit',
  )
  readonly limitCalls: Counter = counter('limit_calls', 'Calls that got a slot.', 'limit')
  readonly limitDeferrals: Counter = counter(
    'limit_put_off',
    'Runs deferred because the next slot was too far away.',
    'limit',
  )
  readonly limitRefusals: Counter = counter(
    'limit_refused',
    'Responses with 429, 503 or 529 that paused the limit.',
    'limit',
  )
  readonly storeSeconds: Histogram = histogram(
    'store_seconds',
    'Duration of a call to the store.',
    CALL_BUCKETS,
    'member',
  )
  readonly storeFailures: Counter = counter('store_failures', 'Calls to the store that failed.', 'member')
  readonly loopLag: Histogram = histogram(
    'event_loop_lag_seconds',
    'Delay of timers, caused by a blocked event loop.',
    CALL_BUCKETS,
  )
  readonly refusedKeys: Counter = counter('keys_refused', 'API calls with an unknown key.')
  readonly apiFailures: Counter = counter('api_failures', 'API calls that failed with API_FAILED.')
  readonly alerts: Counter = counter('alerts_raised', 'Raised alerts, by the first part of their name.', 'alert')

  get all(): readonly Series[] {
    return Object.values(this) as readonly Series[]
  }
}

/** `StoreMetrics` holds the current state over all processes. It is read on each scrape. */
export class StoreMetrics {
  readonly up: Gauge = gauge('store_up', '1 if the store responds.')
  readonly refusedRequests: Counter = counter(
    'requests_refused',
    'HTTP requests that a source rejected.',
    'source',
    'reason',
  )
  readonly lanes: Gauge = gauge('lanes', 'Lanes by state.', 'flow', 'state')
  readonly depth: Gauge = gauge(
    'depth_events',
    'Events that wait in lanes, including those of failed attempts.',
    'flow',
    'state',
  )
  readonly oldest: Gauge = gauge('oldest_ready_seconds', 'How long the first ready lane has been due.', 'flow')
  readonly paused: Gauge = gauge('flow_paused', '1 while the flow is paused.', 'flow')
  readonly deadLetters: Gauge = gauge('dead_letters_kept', 'Dead letters in the store.')
  readonly unroutedEvents: Gauge = gauge('unrouted_events', 'Unrouted events.', 'reason')
  readonly limitPaused: Gauge = gauge('limit_paused_seconds', 'How long the limit is still paused.', 'limit')
  readonly limitBusy: Gauge = gauge(
    'limit_busy_seconds',
    'How long the last caller in the queue waits for a slot.',
    'limit',
  )
  readonly bytes: Gauge = gauge('store_bytes', 'Size of the store.')
  readonly maxBytes: Gauge = gauge('store_limit_bytes', 'Maximum size of the store; missing if it is unbounded.')
  readonly diskUsed: Gauge = gauge('store_disk_used_ratio', "How full the disk of the store's file is, 0 to 1.")
  readonly memoryUsed: Gauge = gauge('store_memory_used_ratio', 'How full the memory of the Redis server is, 0 to 1.')
  readonly deadRows: Gauge = gauge('store_dead_rows', 'Rows that vacuum has not removed yet; PostgreSQL only.', 'table')
  readonly oldestSnapshot: Gauge = gauge(
    'store_oldest_snapshot_seconds',
    'Age of the oldest open transaction or snapshot; PostgreSQL only.',
  )
  readonly clockOffset: Gauge = gauge('clock_offset_seconds', "How far the store's clock is ahead of this machine's.")

  get all(): readonly Series[] {
    return Object.values(this) as readonly Series[]
  }
}
