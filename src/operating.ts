// What people act on, put together: each part of an app that the admin API and the command line operate.
import type { KnownFlows } from './receive/known-flows.ts'
import { OUR_SOURCES } from './receive/route.ts'
import { Audit } from './operate/audit.ts'
import { DeadLetters } from './operate/dead-letters.ts'
import { Keys } from './operate/keys.ts'
import { Flows, Lanes, type OperateParts } from './operate/lanes.ts'
import { purge, type Purged, type PurgeWhat } from './operate/purge.ts'
import { Replays, type ReplaysParts } from './operate/replays.ts'

export interface OperatingParts extends Omit<OperateParts, 'retire'> {
  readonly known: () => Promise<KnownFlows>
  readonly replayStep: ReplaysParts['step']
}

export interface Operating {
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  readonly replays: Replays
  readonly keys: Keys
  readonly audit: Audit
  readonly purge: (what: PurgeWhat) => Promise<Purged>
}

export function operating({ known, replayStep, ...rest }: OperatingParts): Operating {
  const parts: OperateParts = { ...rest, retire: async (flow, by) => (await known()).retire(flow, by) }
  return {
    deadLetters: new DeadLetters(parts),
    lanes: new Lanes(parts),
    flows: new Flows(parts),
    replays: new Replays({ ...parts, ownSources: OUR_SOURCES, step: replayStep }),
    keys: new Keys(parts.store),
    audit: new Audit(parts.store),
    purge: (what) => purge(parts, what),
  }
}
