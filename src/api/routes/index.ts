// All routes of the admin API.
import type { ApiRoute } from '../route.ts'
import { alerts } from './alerts.ts'
import { audit } from './audit.ts'
import { deadLetters } from './dead-letters.ts'
import { encryption } from './encryption.ts'
import { events } from './events.ts'
import { flows } from './flows.ts'
import { keys } from './keys.ts'
import { lanes } from './lanes.ts'
import { limits } from './limits.ts'
import { purge } from './purge.ts'
import { replays } from './replays.ts'
import { runs } from './runs.ts'
import { sources } from './sources.ts'
import { store } from './store.ts'
import { stats } from './stats.ts'
import { subscribers } from './subscribers.ts'

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
  ...purge,
  ...subscribers,
  ...keys,
  ...encryption,
  ...alerts,
  ...audit,
]
