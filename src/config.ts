// Every default in one place.
import type { Duration } from './model/duration.ts'

interface Defaults {
  /** `max` of a window that has only `quiet`, as a multiple of it. */
  readonly maxPerQuiet: number
  readonly maxEvents: number
  readonly maxBytes: number
  readonly retry: { readonly delays: readonly Duration[]; readonly jitter: number }
  /** Runs of one process, all flows together. */
  readonly runsAtOnce: number
  readonly lease: Duration
  readonly heartbeat: Duration
  /** How long a handler may take. */
  readonly timeout: Duration
  /** How long an identity is known. */
  readonly dedupe: Duration
  /** A run whose slot of a limit is further away is put off. */
  readonly maxWait: Duration
  /** How long what is done is kept, and what is dead. */
  readonly completedFor: Duration
  readonly deadLettersFor: Duration
  /** A process looks for work at least this often, should no wake-up reach it. */
  readonly poll: Duration
  /** Wake-ups that come thick and fast share a turn: in milliseconds. */
  readonly newsApart: number
  /** How long `stop` lets runs go on before it aborts them, and then how long they have to return. */
  readonly grace: Duration
  readonly afterAbort: Duration
  /** A flow whose first lane is later than this is an alert. */
  readonly lateAfter: Duration
  /** Of a request, in bytes, unpacked. */
  readonly maxBody: number
  /** Requests of one address. */
  readonly addressRate: { readonly rate: number; readonly per: Duration }
  /** Subscribers that one address, and one key, may register over the API. */
  readonly registrations: { readonly rate: number; readonly per: Duration }
  /** What may wait for the store before requests are answered 503. */
  readonly intakeEvents: number
  readonly intakeBytes: number
  /** An `again` that goes on for longer is a failed attempt. */
  readonly againFor: Duration
}

export const DEFAULTS: Defaults = {
  maxPerQuiet: 10,
  maxEvents: 1_000,
  maxBytes: 4 * 1024 * 1024,
  retry: { delays: ['1s', '5s', '30s', '5m', '30m'], jitter: 0.2 },
  runsAtOnce: 100,
  lease: '30s',
  heartbeat: '10s',
  timeout: '5m',
  dedupe: '7d',
  maxWait: '10s',
  completedFor: '90d',
  deadLettersFor: '365d',
  poll: '1s',
  newsApart: 4,
  grace: '30s',
  afterAbort: '5s',
  lateAfter: '5m',
  maxBody: 1024 * 1024,
  addressRate: { rate: 1_000, per: '1m' },
  registrations: { rate: 60, per: '1m' },
  intakeEvents: 20_000,
  intakeBytes: 64 * 1024 * 1024,
  againFor: '24h',
}
