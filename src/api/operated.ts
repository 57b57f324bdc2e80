// What the admin API operates on: the parts of an app that people act on. An app has them all under these names.
import type { Explanation } from '../observe/explain.ts'
import type { Audit } from '../operate/audit.ts'
import type { DeadLetters } from '../operate/dead-letters.ts'
import type { Keys } from '../operate/keys.ts'
import type { Flows, Lanes } from '../operate/lanes.ts'
import type { Purged, PurgeWhat } from '../operate/purge.ts'
import type { Replays } from '../operate/replays.ts'

export interface Operated {
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  readonly replays: Replays
  readonly keys: Keys
  readonly audit: Audit
  purge(what: PurgeWhat): Promise<Purged>
  explain(flow: string, key: string): Promise<Explanation>
}
