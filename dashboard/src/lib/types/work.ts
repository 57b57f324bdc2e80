// What the admin API returns about events, lanes, runs and dead letters. Fields that only newer servers send are optional: a page hides what is missing.
import type { LaneState, Page } from './status.ts'

/** A failed attempt; `at` is when it ended. */
export interface Attempt {
  readonly at: number
  readonly ms: number
  readonly error: string
}

export interface LaneRun {
  readonly id: string
  readonly state: 'running' | 'retrying' | 'snoozed'
  readonly started: number
  readonly until: number
  readonly events: number
  readonly bytes: number
  readonly tries: number
  readonly lapses: number
  readonly cancel: boolean
  readonly attempts: readonly Attempt[]
}

export interface Lane {
  readonly id: string
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly state: LaneState
  readonly due?: number
  readonly waiting: number
  readonly bytes: number
  readonly blocks: number
  readonly hold?: { readonly reason: string; readonly by: string; readonly until?: number }
  readonly run?: LaneRun
  readonly rank?: number
  readonly cap?: number
  readonly window?: number
  readonly arrivals?: readonly { readonly at: number; readonly inRun: boolean }[]
  readonly deferredBy?: string
  readonly waitsFor?: { readonly limit: string; readonly in: number }
}

export interface LanePage extends Page<Lane> {
  readonly counts?: Readonly<Partial<Record<LaneState | 'limited', number>>>
  readonly exact?: boolean
}

export interface PastRun {
  readonly id: string
  readonly kind: RunKind
  readonly reason: string
  readonly tries: number
  readonly events: number
  readonly opened?: number
  readonly latest?: number
  readonly due?: number
  readonly started: number
  readonly ended: number
  readonly attempts: readonly Attempt[]
  readonly closedBy: ClosedBy
}

export type ClosedBy = 'quiet' | 'max' | 'full' | 'none' | 'early' | 'unknown'

export interface LaneDetail extends Lane {
  readonly events?: readonly {
    readonly id: string
    readonly at: number
    readonly type: string
    readonly subject: string
    readonly source: string
    readonly bytes: number
    readonly inRun: boolean
  }[]
  readonly flowOptions?: {
    readonly window?: { readonly quiet?: number; readonly max?: number }
    readonly windowText: string
    readonly maxEvents?: number
    readonly maxBytes?: number
    readonly whileRunning?: string
    readonly concurrency?: number
    readonly attempts: number
    readonly timeoutMs?: number
    readonly onDead: string
    readonly take: string
    readonly retryDelays: readonly number[]
    readonly delivery: boolean
  }
  readonly slots?: { readonly used: number; readonly of: number }
  readonly medianRunMs?: number
  readonly lastRuns?: readonly PastRun[]
}

export interface Explanation {
  readonly flow: string
  readonly key: string
  readonly state: string
  readonly text: string
  readonly facts: Readonly<Record<string, unknown>>
}

export type RunKind = 'done' | 'partial' | 'dead' | 'dropped' | 'cancelled' | 'purged' | 'superseded'

export interface Run {
  readonly id: string
  readonly parent: string
  readonly lane: string
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly kind: RunKind
  readonly reason: string
  readonly started: number
  readonly ended: number
  readonly tries: number
  readonly lapses: number
  readonly events: readonly string[]
  readonly attempts: readonly Attempt[]
  readonly opened?: number
  readonly latest?: number
  readonly due?: number
  readonly closedBy?: ClosedBy
}

export interface EventItem {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: number
  readonly arrived: number
  readonly tenant: string
  readonly subject: string
  readonly bytes: number
  readonly purged: boolean
  readonly duplicates: number
  readonly lanes: readonly string[]
  readonly skipped: readonly { readonly flow: string; readonly reason: string }[]
  readonly unrouted: readonly { readonly flow: string; readonly reason: string; readonly error: string }[]
  readonly note: string
  readonly found?: string
}

export interface EventPage extends Page<EventItem> {
  readonly searched?: { readonly events: number; readonly from?: number; readonly complete: boolean }
}

export interface EventDetail extends Omit<EventItem, 'lanes'> {
  readonly lanes: readonly {
    readonly id: string
    readonly state: LaneState | 'gone'
    readonly flow?: string
    readonly key?: string
    readonly due?: number
    readonly run?: LaneRun
    readonly waiting?: number
    readonly deferredBy?: string
    readonly position?: number
  }[]
  readonly attributes: Readonly<Record<string, unknown>>
  readonly body: { readonly kind: 'text' | 'base64'; readonly text: string }
  readonly request?: {
    readonly id: string
    readonly method: string
    readonly url: string
    readonly address: string
    readonly headers: Readonly<Record<string, string>>
    readonly body64?: string
  }
  readonly receipts: readonly {
    readonly at: number
    readonly kind: string
    readonly event: string
    readonly bodyHash: string
  }[]
  readonly runs: readonly {
    readonly id: string
    readonly lane: string
    readonly flow: string
    readonly key: string
    readonly kind: RunKind
    readonly started: number
    readonly ended: number
    readonly due?: number
    readonly tries?: number
    readonly attempts?: readonly Attempt[]
    readonly events?: number
    readonly reason?: string
  }[]
  readonly keptUntil?: number
  readonly deliveries?: readonly {
    readonly endpoint: string
    readonly name: string
    readonly run?: string
    readonly status: string
    readonly attempts: readonly DeliveryAttempt[]
    readonly nextRetryAt?: number
  }[]
}

export interface DeadLetter {
  readonly kind: 'run' | 'unrouted'
  readonly id: string
  readonly flow: string
  readonly key?: string
  readonly tenant?: string
  readonly reason: string
  readonly error?: string
  readonly at: number
  readonly state?: 'dead' | 'queued' | 'running'
  readonly tries: number
  readonly blocks?: boolean
  readonly attempts?: readonly Attempt[]
  readonly events: readonly string[]
  readonly lane?: string
  readonly contents?: readonly {
    readonly id: string
    readonly type: string
    readonly source: string
    readonly subject?: string
    readonly tenant?: string
    readonly data?: unknown
  }[]
}

export interface DeadReasons {
  readonly now: number
  readonly total: number
  readonly exact: boolean
  readonly groups: readonly {
    readonly flow: string
    readonly reason: string
    readonly pattern?: string
    readonly kind: string
    readonly count: number
    readonly lanes: number
    readonly blocking: number
    readonly first: number
    readonly last: number
    readonly hours: readonly number[]
  }[]
}

export interface DeadCount {
  readonly count: number
  readonly lanes?: number
  readonly events?: number
  readonly blocking?: number
  readonly exact?: boolean
}

export interface Act {
  readonly id: string
  readonly act: string
  readonly by: string
  readonly at: number
  readonly count: number
  readonly done: number
  readonly deadAgain: number
  readonly open: number
}

export interface DeliveryAttempt {
  readonly at: number
  readonly ms: number
  readonly status?: number
  readonly answer?: string
  readonly error: string
}
