// `app.admin`: everything that operators read and steer, also through the admin API and the command line.
import { withArgumentChecks } from '../validate/arguments.ts'
import type { FlowRegistry } from '../flow/registry.ts'
import * as shapes from './argument-shapes.ts'
import type { Alerts } from './alerts.ts'
import { Audit } from './audit.ts'
import { DeadLetters } from './dead-letters.ts'
import { Keys } from './keys.ts'
import { Flows, Lanes, type OperatorDependencies } from './lanes.ts'
import { Limits, type LimitAdminDependencies } from './limits.ts'
import { Encryption } from './encryption.ts'
import { purge, type PurgeSummary, type PurgeTarget } from './purge.ts'
import { Replays, type ReplaysDependencies } from './replays.ts'
import { Runs } from './runs.ts'
import { Sources, type SourceAdminDependencies } from './sources.ts'
import type { StatsResult, StatsOptions } from './stats.ts'
import { StoredEvents } from './stored-events.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { OWN_SOURCES } from '../model/event.ts'

export interface AdminDependencies
  extends Omit<OperatorDependencies, 'retireFlow'>, Pick<Admin, 'alerts' | 'stats' | 'metrics'> {
  readonly registry: () => Promise<FlowRegistry>
  readonly keyring: Keyring
  readonly publishReplayStep: ReplaysDependencies['publishStep']
  readonly limits: LimitAdminDependencies['declared']
  readonly sources: Pick<SourceAdminDependencies, 'declared'> & {
    readonly receiving: Pick<SourceAdminDependencies, 'refused' | 'forgetSecret' | 'secretOf'> & {
      readonly declared: SourceAdminDependencies['declaredAs']
    }
  }
}

/** `Admin` is `app.admin`: everything that operators read and steer. */
export interface Admin {
  readonly deadLetters: DeadLetters
  readonly lanes: Lanes
  readonly flows: Flows
  readonly replays: Replays
  readonly keys: Keys
  readonly encryption: Encryption
  readonly audit: Audit
  readonly events: StoredEvents
  readonly runs: Runs
  readonly limits: Limits
  readonly sources: Sources
  readonly alerts: Alerts
  readonly purge: (what: PurgeTarget) => Promise<PurgeSummary>
  /** How much arrived, how long it took and how much failed over a window, and how much waits now. */
  readonly stats: (options?: StatsOptions) => Promise<StatsResult>
  /** `metrics` resolves to the text that Prometheus scrapes. */
  readonly metrics: () => Promise<string>
}

export function createAdmin(dependencies: AdminDependencies): Admin {
  const {
    registry: known,
    keyring,
    publishReplayStep: replayStep,
    limits,
    sources,
    alerts,
    stats,
    metrics,
    ...rest
  } = dependencies
  const deps: OperatorDependencies = { ...rest, retireFlow: async (flow, by) => (await known()).retire(flow, by) }
  const { store, emit } = deps
  const { declared, receiving } = sources
  const ofSources = new Sources({
    declared,
    declaredAs: (source) => receiving.declared(source),
    refused: (source) => receiving.refused(source),
    forgetSecret: (source, by) => receiving.forgetSecret(source, by),
    secretOf: (source, by) => receiving.secretOf(source, by),
  })
  return {
    deadLetters: withArgumentChecks(new DeadLetters(deps), 'admin.deadLetters', shapes.DEAD_LETTER_ARGUMENTS),
    lanes: withArgumentChecks(new Lanes(deps), 'admin.lanes', shapes.LANE_ARGUMENTS),
    flows: withArgumentChecks(new Flows(deps), 'admin.flows', shapes.FLOW_ARGUMENTS),
    replays: withArgumentChecks(
      new Replays({ ...deps, reservedSourcePrefix: OWN_SOURCES, publishStep: replayStep }),
      'admin.replays',
      shapes.REPLAY_ARGUMENTS,
    ),
    keys: withArgumentChecks(new Keys(store), 'admin.keys', shapes.KEY_ARGUMENTS),
    encryption: withArgumentChecks(new Encryption({ store, keyring }), 'admin.encryption', shapes.ENCRYPTION_ARGUMENTS),
    audit: withArgumentChecks(new Audit(store), 'admin.audit', shapes.AUDIT_ARGUMENTS),
    events: withArgumentChecks(
      new StoredEvents({ ...deps, reservedSourcePrefix: OWN_SOURCES }),
      'admin.events',
      shapes.STORED_EVENT_ARGUMENTS,
    ),
    runs: withArgumentChecks(new Runs(deps), 'admin.runs', shapes.RUN_ARGUMENTS),
    limits: withArgumentChecks(new Limits({ store, declared: limits, emit }), 'admin.limits', shapes.LIMIT_ARGUMENTS),
    sources: withArgumentChecks(ofSources, 'admin.sources', shapes.SOURCE_ARGUMENTS),
    alerts,
    purge: (what) => purge(deps, what),
    stats,
    metrics,
  }
}
