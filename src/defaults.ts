// `DEFAULTS` holds the default of every option.

const VALUES = {
  /** The default `max` of a window, as a multiple of its `quiet`. */
  maxQuietFactor: 10,
  maxEvents: 1_000,
  /** 4 MiB. */
  maxBytes: 4_194_304,
  retry: { delays: ['1s', '5s', '30s', '5m', '30m'], jitter: 0.2 },
  /** Concurrent runs of one process, over all its flows. */
  maxConcurrentRuns: 100,
  lease: '30s',
  heartbeat: '10s',
  /** How long a handler may take. */
  timeout: '5m',
  /** How long the store recognises a dedupe id. */
  dedupe: '7d',
  /** A run whose slot of a limit is further away is deferred. */
  maxWait: '10s',
  /** How long finished events and runs are kept, and how long dead letters. */
  keepCompleted: '90d',
  keepDeadLetters: '365d',
  /** A process looks for work at least this often if no wake-up reaches it. */
  poll: '1s',
  /** Wake-ups within this many milliseconds share one call to the store. */
  minWakeUpInterval: 4,
  /** How long `stop` lets runs go on before it aborts them, and then how long they have to return. */
  shutdownTimeout: '30s',
  abortTimeout: '5s',
  /** A flow whose first lane is later than this raises an alert. */
  lateAfter: '5m',
  /** The maximum body of a request, in bytes after decompression: 1 MiB. */
  maxBody: 1_048_576,
  /** The maximum rate of requests from one address. */
  addressRate: { rate: 1_000, per: '1m' },
  /** The maximum rate at which one address, or one key, may register endpoints over the API. */
  registrations: { rate: 60, per: '1m' },
  /** How much may wait for the store before the server responds 503: also 64 MiB. */
  maxIntakeEvents: 20_000,
  maxIntakeBytes: 64_194_304,
  /** A run that snoozes for longer in total fails its attempt. */
  snoozeLimit: '24h',
} as const

export const DEFAULTS: typeof VALUES = VALUES
