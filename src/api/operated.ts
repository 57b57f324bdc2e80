// What the admin API operates on: the parts of an app that people act on. An app has them all under these names.
import type { Explanation } from '../observe/explain.ts'
import type { Alerts } from '../operate/alerts.ts'
import type { Audit } from '../operate/audit.ts'
import type { DeadLetters } from '../operate/dead-letters.ts'
import type { Keys } from '../operate/keys.ts'
import type { Flows, Lanes } from '../operate/lanes.ts'
import type { Limits } from '../operate/limits.ts'
import type { Purged, PurgeWhat } from '../operate/purge.ts'
import type { Replays } from '../operate/replays.ts'
import type { Runs } from '../operate/runs.ts'
import type { Sources } from '../operate/sources.ts'
import type { StatsAnswer, StatsAsked } from '../operate/stats.ts'
import type { StoredEvents } from '../operate/stored-events.ts'

export interface Operated {
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  readonly replays: Replays
  readonly keys: Keys
  readonly audit: Audit
  readonly alerts: Alerts
  readonly stored: StoredEvents
  readonly runs: Runs
  readonly limits: Limits
  readonly sources: Sources
  stats(asked?: StatsAsked): Promise<StatsAnswer>
  metrics(): Promise<string>
  purge(what: PurgeWhat): Promise<Purged>
  explain(flow: string, key: string): Promise<Explanation>
}
