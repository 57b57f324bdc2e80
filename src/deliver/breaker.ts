// Whether an endpoint is posted to at all: closed, open, half-open with one probe, disabled. Pure; the store keeps it (D4).
import { later, type Millis } from '../clock.ts'

export type Breaker =
  /** Open to traffic. `failures` in a row, `since` when. */
  | { readonly kind: 'closed'; readonly failures: number; readonly since: Millis }
  /** Nothing is posted before `until`. */
  | { readonly kind: 'open'; readonly failures: number; readonly since: Millis; readonly until: Millis }
  /** One run is trying; should it never come back, another may from `until` on. */
  | {
      readonly kind: 'half-open'
      readonly failures: number
      readonly since: Millis
      readonly until: Millis
      readonly probe: string
    }
  | {
      readonly kind: 'disabled'
      readonly failures: number
      readonly since: Millis
      readonly why: 'gone' | 'failing'
      readonly at: Millis
    }

export const CLOSED: Breaker = { kind: 'closed', failures: 0, since: 0 }

/** In a row: the lane of an endpoint keeps its order, so that its head fails again until it is mended. */
const OPENS_AFTER = 5
const DISABLED_AFTER: Millis = 5 * 24 * 3_600_000
/** If the run that failed is not tried again: when the next one may find out. */
const REST: Millis = 900_000
/** Longer than any POST takes. */
const PROBE_LASTS: Millis = 120_000

export type Admitted =
  | { readonly kind: 'go'; readonly breaker: Breaker }
  /** Undefined: until a person says so. */
  | { readonly kind: 'wait'; readonly until: Millis | undefined }

/** Asked before each POST. Whoever gets `go` must have stored the breaker that comes with it, or have lost the race. */
export function admit(breaker: Breaker, run: string, now: Millis): Admitted {
  switch (breaker.kind) {
    case 'closed':
      return { kind: 'go', breaker }
    case 'disabled':
      return { kind: 'wait', until: undefined }
    case 'half-open':
      // The probe itself may ask twice: its process may have died between.
      return breaker.probe === run || now >= breaker.until ? probing(breaker, run, now) : waiting(breaker.until)
    case 'open':
      return now >= breaker.until ? probing(breaker, run, now) : waiting(breaker.until)
  }
}

export interface PostEnd {
  readonly kind: 'ok' | 'failed' | 'gone'
  readonly now: Millis
  /** When the run that failed is due again by its schedule. Undefined: never. */
  readonly next?: Millis | undefined
}

export interface Moved {
  readonly breaker: Breaker
  /** What is worth an event of that name, `endpoint.…`. */
  readonly told: 'opened' | 'recovered' | 'disabled' | undefined
}

/** After each POST whose end was not ours. */
export function afterPost(breaker: Breaker, { kind, now, next }: PostEnd): Moved {
  // Somebody has disabled it meanwhile, and only a person enables it again.
  if (breaker.kind === 'disabled') return { breaker, told: undefined }
  if (kind === 'ok') return { breaker: CLOSED, told: breaker.kind === 'closed' ? undefined : 'recovered' }
  const failures = breaker.failures + 1
  const since = breaker.failures === 0 ? now : breaker.since
  const disabled = (why: 'gone' | 'failing'): Moved => ({
    breaker: { kind: 'disabled', failures, since, why, at: now },
    told: 'disabled',
  })
  if (kind === 'gone') return disabled('gone')
  if (failures < OPENS_AFTER) return { breaker: { kind: 'closed', failures, since }, told: undefined }
  if (now - since >= DISABLED_AFTER) return disabled('failing')
  // The head run is the probe, so that it decides when: its schedule is what was chosen for this endpoint.
  const open: Breaker = { kind: 'open', failures, since, until: next ?? later(now, REST) }
  return { breaker: open, told: breaker.kind === 'closed' ? 'opened' : undefined }
}

function probing(breaker: Exclude<Breaker, { kind: 'disabled' }>, probe: string, now: Millis): Admitted {
  const { failures, since } = breaker
  return { kind: 'go', breaker: { kind: 'half-open', failures, since, until: later(now, PROBE_LASTS), probe } }
}

function waiting(until: Millis): Admitted {
  return { kind: 'wait', until }
}
