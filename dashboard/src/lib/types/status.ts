// What the admin API returns. Fields that only newer servers send are optional: a page hides what is missing.

export type Role = 'read' | 'publish' | 'register' | 'operate'

export interface Session {
  readonly name: string
  readonly role: Role
  readonly by: 'cookie' | 'key' | 'loopback' | 'host'
  readonly until?: number
  readonly canSignOut: boolean
  readonly app?: {
    readonly version: string
    readonly store: string
    readonly bytes?: number
    readonly durable?: boolean
  }
}

export interface Problem {
  readonly code?: string
  readonly title?: string
  readonly detail?: string
  readonly fix?: string
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next?: string
}

export type Verdict = 'idle' | 'keeping-up' | 'falling-behind' | 'stalled'

export type LaneState =
  | 'idle'
  | 'waiting'
  | 'ready'
  | 'running'
  | 'lapsed'
  | 'retrying'
  | 'snoozed'
  | 'blocked'
  | 'held'

export interface FlowStatus {
  readonly flow: string
  readonly delivery?: boolean
  readonly declared?: boolean
  readonly waiting: number
  readonly ready: number
  readonly running: number
  readonly retrying?: number
  readonly limited?: number
  readonly blocked?: number
  readonly held?: number
  readonly events: number
  readonly oldestDue?: number
  readonly paused?: { readonly reason: string; readonly by: string; readonly since: number }
  readonly window?: string
  readonly concurrency?: number
}

export interface Status {
  readonly now: number
  readonly verdict: Verdict
  readonly reason?: 'paused' | 'unserved' | 'no-slots' | 'unknown'
  readonly sentence: string
  readonly oldestDue?: number
  readonly lastRunBegan?: number
  readonly lastEvent?: number
  readonly lanes: {
    readonly total: number
    readonly exact: boolean
    readonly events: number
    readonly byState: Readonly<Partial<Record<LaneState | 'limited', number>>>
  }
  readonly flows: readonly FlowStatus[]
  readonly deadLetters: number
  readonly unrouted: number
  readonly endpoints: Readonly<Record<'up' | 'degraded' | 'down' | 'paused' | 'disabled' | 'unproven', number>>
  readonly limits: { readonly free: number; readonly slowed: number; readonly paused: number }
  readonly alerts: { readonly raised: number; readonly pending: number }
  readonly replays: { readonly running: number }
  readonly refused: number
}

export interface StatsPoint {
  readonly at: number
  readonly received: number
  readonly done: number
  readonly dropped?: number
  readonly dead: number
  readonly failing: number
  readonly runs?: number
  readonly failedRuns?: number
  readonly lateMs?: number
  readonly meanMs?: number
  readonly p95Ms?: number
  readonly waiting?: number
}

export interface StatsGroup {
  readonly source?: string
  readonly type?: string
  readonly flow?: string
  readonly received: number
  readonly receivedPerMinute: number
  readonly done: number
  readonly dead: number
  readonly failing: number
  readonly meanMs?: number
  readonly p95Ms?: number
  readonly depth?: number
  readonly series?: readonly StatsPoint[]
}

export interface Stats {
  readonly now: number
  readonly from: number
  readonly total: Omit<StatsGroup, 'source' | 'type' | 'flow'>
  readonly groups: readonly StatsGroup[]
  readonly series?: { readonly step: number; readonly from: number; readonly points: readonly StatsPoint[] }
}

export interface Pulse {
  readonly now: number
  readonly past: { readonly from: number; readonly ended: readonly number[]; readonly failed: readonly number[] }
  readonly ahead: { readonly from: number; readonly due: readonly number[] }
  readonly flows: Readonly<
    Record<
      string,
      { readonly ended: readonly number[]; readonly failed: readonly number[]; readonly due: readonly number[] }
    >
  >
}
