// What people act on, put together: each part of an app that the admin API and the command line operate.
import { checked } from './model/arguments.ts'
import type { KnownFlows } from './receive/known-flows.ts'
import { OUR_SOURCES } from './receive/route.ts'
import * as shapes from './operate/argument-shapes.ts'
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
  const ofSources = new Sources({
    declared,
    declaredAs: (source) => receiving.declared(source),
    refused: (source) => receiving.refused(source),
    forgetSecret: (source, by) => receiving.forgetSecret(source, by),
    secretOf: (source, by) => receiving.secretOf(source, by),
  })
  return {
    deadLetters: checked(new DeadLetters(parts), 'deadLetters', shapes.DEAD_LETTERS),
    lanes: checked(new Lanes(parts), 'lanes', shapes.LANES),
    flows: checked(new Flows(parts), 'flows', shapes.FLOWS),
    replays: checked(new Replays({ ...parts, ownSources: OUR_SOURCES, step: replayStep }), 'replays', shapes.REPLAYS),
    keys: checked(new Keys(store), 'keys', shapes.KEYS),
    masterKey: checked(new MasterKey({ store, seal }), 'masterKey', shapes.MASTER_KEY),
    audit: checked(new Audit(store), 'audit', shapes.AUDIT),
    stored: checked(new StoredEvents({ ...parts, ownSources: OUR_SOURCES }), 'stored', shapes.STORED),
    runs: checked(new Runs(parts), 'runs', shapes.RUNS),
    limits: checked(new Limits({ store, declared: limits, emit }), 'limits', shapes.LIMITS),
    sources: checked(ofSources, 'sources', shapes.SOURCES),
    purge: (what) => purge(parts, what),
  }
}
