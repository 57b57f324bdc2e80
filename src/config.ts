// Every default in one place.
import type { Duration } from './model/duration.ts'

interface Defaults {
  /** `max` of a window that has only `quiet`, as a multiple of it. */
  readonly maxPerQuiet: number
  readonly maxEvents: number
  readonly maxBytes: number
  readonly retry: { readonly delays: readonly Duration[]; readonly jitter: number }
}

export const DEFAULTS: Defaults = {
  maxPerQuiet: 10,
  maxEvents: 1_000,
  maxBytes: 4 * 1024 * 1024,
  retry: { delays: ['1s', '5s', '30s', '5m', '30m'], jitter: 0.2 },
}
