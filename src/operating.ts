// What people act on, put together: each part of an app that the admin API and the command line operate.
import type { KnownFlows } from './receive/known-flows.ts'
import { OUR_SOURCES } from './receive/route.ts'
import { Audit } from './operate/audit.ts'
import { DeadLetters } from './operate/dead-letters.ts'
import { Keys } from './operate/keys.ts'
import { Flows, Lanes, type OperateParts } from './operate/lanes.ts'
import { Limits, type LimitsParts } from './operate/limits.ts'
import { MasterKey } from './operate/master-key.ts'
import { purge, type Purged, type PurgeWhat } from './operate/purge.ts'
import { Replays, type ReplaysParts } from './operate/replays.ts'
import { Runs } from './operate/runs.ts'
import { Sources, type SourcesParts } from './operate/sources.ts'
import { StoredEvents } from './operate/stored-events.ts'
import type { Seal } from './seal.ts'

export interface OperatingParts extends Omit<OperateParts, 'retire'> {
  readonly known: () => Promise<KnownFlows>
  readonly seal: Seal
  readonly replayStep: ReplaysParts['step']
  readonly limits: LimitsParts['declared']
  readonly sources: Pick<SourcesParts, 'declared'> & {
    readonly receiving: Pick<SourcesParts, 'refused' | 'forgetSecret' | 'secretOf'> & {
      readonly declared: SourcesParts['declaredAs']
    }
  }
}

export interface Operating {
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  readonly replays: Replays
  readonly keys: Keys
  readonly masterKey: MasterKey
  readonly audit: Audit
  readonly stored: StoredEvents
  readonly runs: Runs
  readonly limits: Limits
  readonly sources: Sources
  readonly purge: (what: PurgeWhat) => Promise<Purged>
}

export function operating({ known, seal, replayStep, limits, sources, ...rest }: OperatingParts): Operating {
  const parts: OperateParts = { ...rest, retire: async (flow, by) => (await known()).retire(flow, by) }
  const { store, emit } = parts
  const { declared, receiving } = sources
  return {
    deadLetters: new DeadLetters(parts),
    lanes: new Lanes(parts),
    flows: new Flows(parts),
    replays: new Replays({ ...parts, ownSources: OUR_SOURCES, step: replayStep }),
    keys: new Keys(store),
    masterKey: new MasterKey({ store, seal }),
    audit: new Audit(store),
    stored: new StoredEvents({ ...parts, ownSources: OUR_SOURCES }),
    runs: new Runs(parts),
    limits: new Limits({ store, declared: limits, emit }),
    sources: new Sources({
      declared,
      declaredAs: (source) => receiving.declared(source),
      refused: (source) => receiving.refused(source),
      forgetSecret: (source, by) => receiving.forgetSecret(source, by),
      secretOf: (source, by) => receiving.secretOf(source, by),
    }),
    purge: (what) => purge(parts, what),
  }
}
