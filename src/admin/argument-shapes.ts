// The arguments that each member of `app.admin` takes.
import type { ArgumentShapes } from '../validate/arguments.ts'
import type { Audit } from './audit.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Keys } from './keys.ts'
import type { Flows, Lanes } from './lanes.ts'
import type { Limits } from './limits.ts'
import type { Encryption } from './encryption.ts'
import type { Replays } from './replays.ts'
import type { Runs } from './runs.ts'
import type { Sources } from './sources.ts'
import type { StoredEvents } from './stored-events.ts'

const page = { 'cursor?': 'text', 'n?': 'count' } as const
const lane = { flow: 'text', key: 'text' } as const
const laneFilter = { 'flow?': 'text', 'key?': 'text', 'tenant?': 'text' } as const
const timeRange = { 'from?': 'millis', 'to?': 'millis' } as const
const deadFilter = { 'kind?': ['run', 'unrouted'], ...laneFilter, ...timeRange } as const
const dead = { 'filter?': deadFilter } as const
const events = { 'source?': 'text', 'type?': 'text', ...laneFilter, ...timeRange } as const

export const DEAD_LETTER_ARGUMENTS: ArgumentShapes<DeadLetters> = {
  list: { ...dead, ...page },
  count: dead,
  show: { id: 'text' },
  retry: { which: 'textOrObject' },
  drop: { which: 'textOrObject' },
  exportPage: { ...dead, ...page },
}

export const LANE_ARGUMENTS: ArgumentShapes<Lanes> = {
  get: lane,
  list: { 'filter?': { 'flow?': 'text', 'tenant?': 'text' }, ...page },
  search: { 'filter?': laneFilter, ...page },
  show: { id: 'text' },
  steer: { id: 'text', act: { kind: ['run-now', 'cancel', 'drop', 'unhold', 'hold'] } },
  runNow: lane,
  cancel: lane,
  drop: lane,
  // `hold` checks its fields itself, because it is called in more than one way.
  hold: { ...lane, hold: 'object' },
  unhold: lane,
}

export const FLOW_ARGUMENTS: ArgumentShapes<Flows> = {
  pause: { flow: 'text', why: { reason: 'text', by: 'text' } },
  resume: { flow: 'text', 'by?': 'text' },
  retire: { flow: 'text', 'by?': 'text' },
}

export const REPLAY_ARGUMENTS: ArgumentShapes<Replays> = {
  // `start` and `count` check their filters themselves.
  show: { id: 'text' },
  cancel: { id: 'text' },
}

export const KEY_ARGUMENTS: ArgumentShapes<Keys> = {
  make: { options: { 'by?': 'text' } },
  revoke: { which: 'text', 'by?': 'text' },
  authenticate: { secret: 'text' },
}

export const ENCRYPTION_ARGUMENTS: ArgumentShapes<Encryption> = {
  rotate: { 'options?': { 'after?': 'text', 'by?': 'text' } },
}

export const AUDIT_ARGUMENTS: ArgumentShapes<Audit> = {
  write: { who: 'text', what: 'text' },
  list: { 'filter?': timeRange, ...page },
  verify: { 'known?': 'text' },
}

export const STORED_EVENT_ARGUMENTS: ArgumentShapes<StoredEvents> = {
  list: { 'filter?': events, ...page },
  show: { id: 'text' },
}

export const RUN_ARGUMENTS: ArgumentShapes<Runs> = {
  list: { 'filter?': { ...laneFilter, 'lane?': 'text', ...timeRange }, ...page },
  show: { id: 'text' },
}

export const LIMIT_ARGUMENTS: ArgumentShapes<Limits> = {
  list: page,
  show: { name: 'text' },
  pause: { name: 'text', how: { for: 'anything' } },
  resume: { name: 'text' },
}

export const SOURCE_ARGUMENTS: ArgumentShapes<Sources> = {
  refused: { source: 'text' },
  secret: { source: 'text', 'by?': 'text' },
  forgetSecret: { source: 'text', 'by?': 'text' },
}
