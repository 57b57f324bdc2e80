// All routes of the admin API.
import type { ApiRoute } from '../route.ts'
import { deadLetters } from './dead-letters.ts'
import { events, purge } from './events.ts'
import { audit, encryption, keys } from './keys.ts'
import { flows, lanes } from './lanes.ts'
import { limits } from './limits.ts'
import { replays } from './replays.ts'
import { runs } from './runs.ts'
import { sources } from './sources.ts'
import { alerts, stats, store } from './stats.ts'
import { status } from './status.ts'
import { subscribers } from './subscribers.ts'
import { transforms } from './transforms.ts'

export const ROUTES: readonly ApiRoute[] = [
  ...events,
  ...flows,
  ...lanes,
  ...runs,
  ...deadLetters,
  ...replays,
  ...limits,
  ...sources,
  ...store,
  ...stats,
  ...status,
  ...purge,
  ...subscribers,
  ...transforms,
  ...keys,
  ...encryption,
  ...alerts,
  ...audit,
]
