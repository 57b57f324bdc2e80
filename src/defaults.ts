// `DEFAULTS` holds the default of every option.
import type { Duration } from './model/duration.ts'

interface Defaults {
  /** The default `max` of a window, as a multiple of its `quiet`. */
  readonly maxQuietFactor: number
  readonly maxEvents: number
  readonly maxBytes: number
  readonly retry: { readonly delays: readonly Duration[]; readonly jitter: number }
  /** Concurrent runs of one process, over all its flows. */
  readonly maxConcurrentRuns: number
  readonly lease: Duration
  readonly heartbeat: Duration
  /** How long a handler may take. */
  readonly timeout: Duration
  /** How long the store recognises a dedupe id. */
  readonly dedupe: Duration
  /** A run whose slot of a limit is further away is deferred. */
  readonly maxWait: Duration
  /** How long finished events and runs are kept, and how long dead letters. */
  readonly keepCompleted: Duration
  readonly keepDeadLetters: Duration
  /** A process looks for work at least this often if no wake-up reaches it. */
  readonly poll: Duration
  /** Wake-ups within this many milliseconds share one call to the store. */
  readonly minWakeUpInterval: number
  /** How long `stop` lets runs go on before it aborts them, and then how long they have to return. */
  readonly shutdownTimeout: Duration
  readonly abortTimeout: Duration
  /** A flow whose first lane is later than this raises an alert. */
  readonly lateAfter: Duration
  /** The maximum body of a request, in bytes after decompression. */
  readonly maxBody: number
  /** The maximum rate of requests from one address. */
  readonly addressRate: { readonly rate: number; readonly per: Duration }
  /** The maximum rate at which one address, or one key, may register endpoints over the API. */
  readonly registrations: { readonly rate: number; readonly per: Duration }
  /** How much may wait for the store before the server responds 503. */
  readonly maxIntakeEvents: number
  readonly maxIntakeBytes: number
  /** A run that snoozes for longer in total fails its attempt. */
  readonly snoozeLimit: Duration
}

export const DEFAULTS: Defaults = {
  maxQuietFactor: 10,
  maxEvents: 1_000,
  maxBytes: 4 * 1024 * 1024,
  retry: { delays: ['1s', '5s', '30s', '5m', '30m'], jitter: 0.2 },
  maxConcurrentRuns: 100,
  lease: '30s',
  heartbeat: '10s',
  timeout: '5m',
  dedupe: '7d',
  maxWait: '10s',
  keepCompleted: '90d',
  keepDeadLetters: '365d',
  poll: '1s',
  minWakeUpInterval: 4,
  shutdownTimeout: '30s',
  abortTimeout: '5s',
  lateAfter: '5m',
  maxBody: 1024 * 1024,
  addressRate: { rate: 1_000, per: '1m' },
  registrations: { rate: 60, per: '1m' },
  maxIntakeEvents: 20_000,
  maxIntakeBytes: 64 * 1024 * 1024,
  snoozeLimit: '24h',
}
