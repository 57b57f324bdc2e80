// The breaker decides whether an endpoint is posted to: closed, open, half-open with one probe, or disabled. Pure;
// `BreakerStore` stores it (D4).
import { addDelay, type Millis } from '../../clock.ts'

export type Breaker =
  /** Posts normally. `failures` counts failures in a row, the first of them at `since`. */
  | { readonly kind: 'closed'; readonly failures: number; readonly since: Millis }
  /** Posts nothing before `until`. */
  | { readonly kind: 'open'; readonly failures: number; readonly since: Millis; readonly until: Millis }
  /** One run probes the endpoint. If it never returns, another run may probe from `until` on. */
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

/** Failures in a row. A lane keeps its order, so its head fails until the endpoint is repaired. */
const OPENS_AFTER = 5
/** `DISABLE_AFTER` is the default of the endpoint's own option. */
export const DISABLE_AFTER = '5d'
/** The pause before the next probe if the failed run is not retried. */
const DEAD_RUN_PAUSE: Millis = 900_000
/** Longer than any POST takes. */
const PROBE_TIMEOUT: Millis = 120_000

export type Admission =
  | { readonly kind: 'go'; readonly breaker: Breaker }
  /** Undefined: until a person enables the endpoint. */
  | { readonly kind: 'wait'; readonly until: Millis | undefined }

/** `admit` is called before each POST. On `go` the caller must store the breaker, or it has lost the race. */
export function admit(breaker: Breaker, run: string, now: Millis): Admission {
  switch (breaker.kind) {
    case 'closed':
      return { kind: 'go', breaker }
    case 'disabled':
      return { kind: 'wait', until: undefined }
    case 'half-open':
      // The probe itself may ask twice, because its process may have died in between.
      return breaker.probe === run || now >= breaker.until ? toHalfOpen(breaker, run, now) : toWait(breaker.until)
    case 'open':
      return now >= breaker.until ? toHalfOpen(breaker, run, now) : toWait(breaker.until)
  }
}

export interface BreakerInput {
  readonly kind: 'ok' | 'failed' | 'gone'
  readonly now: Millis
  /** When the failed run is due again by its schedule. Undefined: never. */
  readonly next?: Millis | undefined
  /** How long an endpoint may fail before it is disabled. */
  readonly disableAfter: Millis
}

export interface BreakerTransition {
  readonly breaker: Breaker
  /** The name after `endpoint.` of the event to publish, if any. */
  readonly event: 'opened' | 'recovered' | 'disabled' | undefined
}

/** `transitionAfterPost` is called after each POST, except after Sluice's own failures. */
export function transitionAfterPost(
  breaker: Breaker,
  { kind, now, next, disableAfter }: BreakerInput,
): BreakerTransition {
  // Only a person enables a disabled endpoint again.
  if (breaker.kind === 'disabled') return { breaker, event: undefined }
  if (kind === 'ok') return { breaker: CLOSED, event: breaker.kind === 'closed' ? undefined : 'recovered' }
  const failures = breaker.failures + 1
  const since = breaker.failures === 0 ? now : breaker.since
  const disabled = (why: 'gone' | 'failing'): BreakerTransition => ({
    breaker: { kind: 'disabled', failures, since, why, at: now },
    event: 'disabled',
  })
  if (kind === 'gone') return disabled('gone')
  if (failures < OPENS_AFTER) return { breaker: { kind: 'closed', failures, since }, event: undefined }
  if (now - since >= disableAfter) return disabled('failing')
  // The head run is the probe, so its schedule decides when the breaker lets it through.
  const open: Breaker = { kind: 'open', failures, since, until: next ?? addDelay(now, DEAD_RUN_PAUSE) }
  return { breaker: open, event: breaker.kind === 'closed' ? 'opened' : undefined }
}

/** `probeNow` lets the next run probe at once, e.g. after an operator says that the endpoint is repaired. */
export function probeNow(breaker: Breaker, now: Millis): Breaker {
  return breaker.kind === 'open' ? { ...breaker, until: Math.min(breaker.until, now) } : breaker
}

function toHalfOpen(breaker: Exclude<Breaker, { kind: 'disabled' }>, probe: string, now: Millis): Admission {
  const { failures, since } = breaker
  return { kind: 'go', breaker: { kind: 'half-open', failures, since, until: addDelay(now, PROBE_TIMEOUT), probe } }
}

function toWait(until: Millis): Admission {
  return { kind: 'wait', until }
}
