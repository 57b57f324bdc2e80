// The language of states: for each a tone (the colour), an icon and a word. All three always stand together.
import type { Alert, Delivery, Endpoint, Lane, LaneState, Limit, RunKind, Verdict } from './types.ts'

export type Tone = 'wait' | 'ready' | 'run' | 'limit' | 'fail' | 'still'

/** The names of the icons are those of `components/icon.tsx`. */
export interface Look {
  readonly tone: Tone
  readonly icon:
    | `s-${'idle' | 'held' | 'limit' | 'pending' | 'ready' | 'retry' | 'off' | 'blocked' | 'dead' | 'lapsed' | 'run' | 'up' | 'wait' | 'warn'}`
    | 'check'
  readonly word: string
}

const look = (tone: Tone, icon: Look['icon'], word: string): Look => ({ tone, icon, word })

export type ShownState = LaneState | 'limited'

export const LANE_LOOKS: Readonly<Record<ShownState, Look>> = {
  ready: look('ready', 's-ready', 'Ready'),
  running: look('run', 's-run', 'Running'),
  waiting: look('wait', 's-wait', 'Waiting'),
  limited: look('limit', 's-limit', 'Limited'),
  snoozed: look('still', 's-retry', 'Snoozed'),
  retrying: look('fail', 's-retry', 'Retrying'),
  lapsed: look('fail', 's-lapsed', 'Lapsed'),
  blocked: look('fail', 's-blocked', 'Blocked'),
  held: look('still', 's-held', 'Held'),
  idle: look('still', 's-idle', 'Idle'),
}

/** `shownState` tells a lane that a limit deferred, or whose run waits for a slot, from one that its handler snoozed. */
export function shownState(lane: Pick<Lane, 'state' | 'deferredBy'>): ShownState {
  return lane.state === 'snoozed' && lane.deferredBy !== undefined ? 'limited' : lane.state
}

export const RUN_LOOKS: Readonly<Record<RunKind, Look>> = {
  done: look('run', 'check', 'Done'),
  partial: look('ready', 's-warn', 'Partly done'),
  dead: look('fail', 's-dead', 'Dead'),
  dropped: look('still', 's-off', 'Dropped'),
  cancelled: look('still', 's-off', 'Cancelled'),
  purged: look('still', 's-off', 'Purged'),
  superseded: look('still', 's-idle', 'Superseded'),
}

export type Health = 'up' | 'degraded' | 'down' | 'paused' | 'disabled' | 'unproven'

export const HEALTH_LOOKS: Readonly<Record<Health, Look>> = {
  up: look('run', 's-up', 'Up'),
  degraded: look('ready', 's-warn', 'Degraded'),
  down: look('fail', 's-dead', 'Down'),
  paused: look('still', 's-held', 'Paused'),
  disabled: look('still', 's-off', 'Disabled'),
  unproven: look('still', 's-pending', 'Not proven'),
}

export function healthOf(endpoint: Endpoint): Health {
  if (endpoint.health?.breaker === 'disabled') return 'disabled'
  if (!endpoint.active) return 'paused'
  if (endpoint.proof === 'pending') return 'unproven'
  return endpoint.health?.status ?? 'up'
}

export const DELIVERY_LOOKS: Readonly<Record<Delivery['status'], Look>> = {
  PENDING: look('wait', 's-wait', 'Waiting'),
  DELIVERING: look('run', 's-run', 'Delivering'),
  SUCCESS: look('run', 'check', 'Delivered'),
  FAILED: look('fail', 's-dead', 'Failed'),
}

/** A run whose slot is further away than this is deferred. */
const FAR_SLOT = 10_000

/** `isExhausted` tells a limit that makes runs wait from one that is only busy. */
export function isExhausted({ waiting = 0, used = 0, busyUntil = 0 }: Limit, now: number): boolean {
  return waiting > 0 && (used >= 0.995 || busyUntil - now > FAR_SLOT)
}

export function limitLook(limit: Limit, now: number): Look {
  if (limit.pausedUntil !== undefined && limit.pausedUntil > now) {
    if (limit.paused?.cause === 'operator') return look('still', 's-held', 'Paused by a person')
    return look(
      'limit',
      's-limit',
      limit.paused?.cause === 'response' ? `Paused by a ${limit.paused.status ?? 429}` : 'Paused',
    )
  }
  if (limit.stretch !== undefined && limit.stretch > 1.005)
    return look('limit', 's-limit', `Slowed ×${limit.stretch.toFixed(1)}`)
  // Somebody waits, and every slot until then is reserved.
  if ((limit.waiting ?? 0) > 0 && (limit.busyUntil ?? 0) > now) return look('limit', 's-limit', 'Used up')
  return look('run', 's-up', 'Free')
}

export const ALERT_LOOKS: Readonly<Record<Alert['state'] | 'broken', Look>> = {
  clear: look('run', 's-up', 'Clear'),
  pending: look('ready', 's-pending', 'Pending'),
  raised: look('fail', 's-dead', 'Raised'),
  easing: look('ready', 's-retry', 'Easing'),
  broken: look('still', 's-lapsed', 'Broken'),
}

export const VERDICT_LOOKS: Readonly<Record<Verdict, Look>> = {
  idle: look('still', 's-idle', 'Idle'),
  'keeping-up': look('run', 's-up', 'Keeping up'),
  'falling-behind': look('ready', 's-warn', 'Falling behind'),
  stalled: look('fail', 's-dead', 'Stalled'),
}
