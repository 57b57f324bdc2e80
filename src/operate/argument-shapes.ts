// What each member takes of whatever people operate an app by.
import type { Members } from '../model/arguments.ts'
import type { Audit } from './audit.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Keys } from './keys.ts'
import type { Flows, Lanes } from './lanes.ts'
import type { Limits } from './limits.ts'
import type { MasterKey } from './master-key.ts'
import type { Replays } from './replays.ts'
import type { Runs } from './runs.ts'
import type { Sources } from './sources.ts'
import type { StoredEvents } from './stored-events.ts'

const page = { 'cursor?': 'text', 'n?': 'count' } as const
const lane = { flow: 'text', key: 'text' } as const
const ofLane = { 'flow?': 'text', 'key?': 'text', 'tenant?': 'text' } as const
const times = { 'from?': 'millis', 'to?': 'millis' } as const
const deadFilter = { 'kind?': ['run', 'unrouted'], ...ofLane, ...times } as const
const dead = { 'filter?': deadFilter } as const
const events = { 'source?': 'text', 'type?': 'text', ...ofLane, ...times } as const

export const DEAD_LETTERS: Members<DeadLetters> = {
  list: { ...dead, ...page },
  count: dead,
  show: { id: 'text' },
  retry: { which: 'textOrObject' },
  drop: { which: 'textOrObject' },
  exportPage: { ...dead, ...page },
}

export const LANES: Members<Lanes> = {
  get: lane,
  list: { 'filter?': { 'flow?': 'text', 'tenant?': 'text' }, ...page },
  search: { 'filter?': ofLane, ...page },
  show: { id: 'text' },
  steer: { id: 'text', act: { kind: ['run-now', 'cancel', 'drop', 'unhold', 'hold'] } },
  runNow: lane,
  cancel: lane,
  drop: lane,
  // What is said of it is checked with the hold, however it was asked for.
  hold: { ...lane, hold: 'object' },
  unhold: lane,
}

export const FLOWS: Members<Flows> = {
  pause: { flow: 'text', why: { reason: 'text', by: 'text' } },
  resume: { flow: 'text', 'by?': 'text' },
  retire: { flow: 'text', 'by?': 'text' },
}

export const REPLAYS: Members<Replays> = {
  // What is started or counted is checked where it is understood.
  show: { id: 'text' },
  cancel: { id: 'text' },
}

export const KEYS: Members<Keys> = {
  make: { options: { 'by?': 'text' } },
  revoke: { which: 'text', 'by?': 'text' },
  find: { secret: 'text' },
}

export const MASTER_KEY: Members<MasterKey> = { rotate: { 'options?': { 'after?': 'text', 'by?': 'text' } } }

export const AUDIT: Members<Audit> = {
  write: { who: 'text', what: 'text' },
  list: { 'filter?': times, ...page },
  verify: { 'known?': 'text' },
}

export const STORED: Members<StoredEvents> = { list: { 'filter?': events, ...page }, show: { id: 'text' } }

export const RUNS: Members<Runs> = {
  list: { 'filter?': { ...ofLane, 'lane?': 'text', ...times }, ...page },
  show: { id: 'text' },
}

export const LIMITS: Members<Limits> = {
  list: page,
  show: { name: 'text' },
  pause: { name: 'text', how: { for: 'anything' } },
  resume: { name: 'text' },
}

export const SOURCES: Members<Sources> = {
  refused: { source: 'text' },
  secret: { source: 'text', 'by?': 'text' },
  forgetSecret: { source: 'text', 'by?': 'text' },
}
