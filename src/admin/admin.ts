// `app.admin`: everything that operators read and steer, also through the admin API and the command line.
import type { Millis } from '../clock.ts'
import { withArgumentChecks, type ArgumentShapes } from '../validate/options.ts'
import type { EndpointWithHealth } from '../deliver/endpoints.ts'
import type { FlowRegistry } from '../flow/registry.ts'
import type { Alerts } from './alerts.ts'
import { Audit } from './audit.ts'
import { DeadLetters } from './dead-letters.ts'
import { Keys } from './keys.ts'
import { Flows } from './flows.ts'
import { LaneList } from './lane-list.ts'
import { Lanes, type OperatorDependencies } from './lanes.ts'
import { Limits, type LimitAdminDependencies } from './limits.ts'
import { Encryption } from './encryption.ts'
import { purge, type PurgeSummary, type PurgeTarget } from './purge.ts'
import { Replays, type ReplaysDependencies } from './replays.ts'
import { Runs } from './runs.ts'
import { createSample, readSourceActivity } from './source-activity.ts'
import type { Sources, SourcesAdmin } from './sources.ts'
import { AppStatus, type AppStatusDependencies, type StatusView } from './status.ts'
import type { StatsResult, StatsOptions } from './stats.ts'
import { StoredEvents, type StoredEventsDependencies } from './stored-events.ts'
import type { ExplainDependencies } from '../observe/explain/explain.ts'
import { LaneScan } from '../observe/status/lane-scan.ts'
import { Pulse, type PulseView } from '../observe/status/pulse.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { OWN_SOURCES } from '../model/event.ts'

export interface AdminDependencies
  extends
    Omit<OperatorDependencies, 'retireFlow'>,
    Pick<Admin, 'alerts' | 'metrics'>,
    Pick<ReplaysDependencies, 'publishStep'>,
    Pick<AppStatusDependencies, 'clock' | 'recorder'> {
  readonly work: () => Promise<ExplainDependencies>
  readonly sources: Sources
  readonly now: () => Millis
  readonly stats: (options: StatsOptions | undefined, scan: LaneScan) => Promise<StatsResult>
  readonly keepEvents: StoredEventsDependencies['keepEvents']
  readonly registry: () => Promise<FlowRegistry>
  readonly keyring: Keyring
  readonly limits: LimitAdminDependencies['declared']
  readonly meter: LimitAdminDependencies['meter']
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
  readonly sources: SourcesAdmin
  readonly alerts: Alerts
  readonly purge: (target: PurgeTarget) => Promise<PurgeSummary>
  /** How much arrived, how long it took and how much failed over a window, and how much waits now. */
  readonly stats: (options?: StatsOptions) => Promise<StatsResult>
  /** `status` returns whether the app keeps up, what waits where, and what needs a person. It is computed about once a second. */
  readonly status: () => Promise<StatusView>
  /** `pulse` returns the runs that ended in each of the last 60 seconds, and the lanes that come due in the next 60. */
  readonly pulse: () => Promise<PulseView>
  /** `metrics` resolves to the text that Prometheus scrapes. */
  readonly metrics: () => Promise<string>
}

export function createAdmin(dependencies: AdminDependencies): Admin {
  const { registry, keyring, publishStep, sources, alerts, stats, metrics, ...rest } = dependencies
  const { store, emit, clock, recorder, work, keepEvents } = rest
  const deps: OperatorDependencies = { ...rest, retireFlow: async (flow, by) => (await registry()).retire(flow, by) }
  const scan = new LaneScan({ store, clock })
  const pulse = new Pulse({ store, scan })
  const runs = new Runs(deps)
  const limits = new Limits({ store, declared: dependencies.limits, emit, meter: rest.meter, scan, work })
  const replays = new Replays({ ...deps, clock, reservedSourcePrefix: OWN_SOURCES, publishStep })
  const listEndpoints = (): Promise<readonly EndpointWithHealth[]> => rest.deliveries().endpoints.list()
  const state = { alerts, limits, replays, sources, recorder, listEndpoints, work }
  const status = new AppStatus({ store, clock, flows: deps.flows, scan, ...state })
  const admin: Admin = {
    deadLetters: new DeadLetters({ ...deps, clock }),
    lanes: new Lanes({ ...deps, list: new LaneList(scan), work, runs }),
    flows: new Flows(deps),
    replays,
    keys: new Keys(store),
    encryption: new Encryption({ store, keyring }),
    audit: new Audit(store),
    events: new StoredEvents({ ...deps, clock, recorder, keepEvents, reservedSourcePrefix: OWN_SOURCES }),
    runs,
    limits,
    sources: {
      ...sources,
      activity: () => readSourceActivity({ sources, recorder, now: rest.now }),
      sample: async (name, origin) => createSample({ sources, now: rest.now }, name, origin),
    },
    alerts,
    purge: (what) => purge(deps, what),
    stats: (options) => stats(options, scan),
    status: () => status.read(),
    pulse: () => pulse.read(),
    metrics,
  }
  for (const [name, shapes] of Object.entries<ArgumentShapes<object>>(ARGUMENTS)) {
    withArgumentChecks<object>(admin[name as keyof Admin], `admin.${name}`, shapes)
  }
  return admin
}

/** The arguments that the members of `app.admin` take. */
const page = { 'cursor?': 'text', 'n?': 'count' } as const
const lane = { flow: 'text', key: 'text' } as const
const laneFilter = { 'flow?': 'text', 'key?': 'text', 'tenant?': 'text' } as const
const RUN_KINDS = ['done', 'partial', 'dead', 'dropped', 'cancelled', 'purged', 'superseded'] as const
const timeRange = { 'from?': 'millis', 'to?': 'millis' } as const
const deadFilter = {
  'kind?': ['run', 'unrouted'],
  ...laneFilter,
  'subject?': 'text',
  'reason?': 'text',
  ...timeRange,
} as const
const dead = { 'filter?': deadFilter } as const
const events = { 'source?': 'text', 'type?': 'text', 'subject?': 'text', ...laneFilter, ...timeRange } as const

const ARGUMENTS: { readonly [Name in keyof Admin]?: ArgumentShapes<Admin[Name]> } = {
  deadLetters: {
    list: { ...dead, ...page },
    count: dead,
    preview: dead,
    reasons: dead,
    act: { act: ['retry', 'drop'], filter: deadFilter, 'how?': { 'by?': 'text' } },
    progress: { act: 'text' },
    show: { id: 'text' },
    retry: { which: 'textOrObject' },
    drop: { which: 'textOrObject' },
    exportPage: { ...dead, ...page },
  },
  lanes: {
    get: lane,
    list: { 'filter?': { 'flow?': 'text', 'tenant?': 'text' }, ...page },
    search: { 'filter?': { ...laneFilter, 'states?': 'anything', 'q?': 'text', 'order?': ['due', 'newest'] }, ...page },
    details: { id: 'text' },
    show: { id: 'text' },
    steer: { id: 'text', act: { kind: ['run-now', 'cancel', 'drop', 'unhold', 'hold'] } },
    runNow: lane,
    cancel: lane,
    drop: lane,
    // `hold` checks its fields itself, because it is called in more than one way.
    hold: { ...lane, hold: 'object' },
    unhold: lane,
  },
  flows: {
    pause: { flow: 'text', why: { reason: 'text', by: 'text' } },
    resume: { flow: 'text', 'by?': 'text' },
    retire: { flow: 'text', 'by?': 'text' },
  },
  replays: {
    // `start` and `count` check their filters themselves.
    show: { id: 'text' },
    cancel: { id: 'text' },
    resume: { id: 'text' },
  },
  keys: {
    create: { options: { 'by?': 'text' } },
    revoke: { which: 'text', 'by?': 'text' },
    authenticate: { secret: 'text' },
    find: { id: 'text' },
  },
  encryption: {
    rotate: { 'options?': { 'after?': 'text', 'by?': 'text' } },
  },
  audit: {
    write: { who: 'text', what: 'text' },
    list: { 'filter?': timeRange, ...page },
    verify: { 'known?': 'text' },
  },
  events: {
    list: { 'filter?': { ...events, 'q?': 'text' }, ...page },
    histogram: { 'filter?': events, 'step?': 'anything' },
    show: { id: 'text' },
  },
  runs: {
    list: {
      'filter?': { ...laneFilter, 'lane?': 'text', 'kind?': RUN_KINDS, 'event?': 'text', ...timeRange },
      ...page,
    },
    show: { id: 'text' },
  },
  limits: {
    list: page,
    show: { name: 'text' },
    usage: { name: 'text' },
    pause: { name: 'text', how: { for: 'anything' } },
    resume: { name: 'text' },
  },
  sources: {
    refused: { source: 'text' },
    sample: { source: 'text', origin: 'text' },
    secret: { source: 'text', 'by?': 'text' },
    forgetSecret: { source: 'text', 'by?': 'text' },
  },
}
