// What the admin API returns about endpoints, limits, sources and alerts. Fields that only newer servers send are optional: a page hides what is missing.
import type { DeliveryAttempt } from './work.ts'

export interface Endpoint {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly eventFilter: readonly string[]
  readonly where: unknown
  readonly description: string
  readonly headers: readonly string[]
  readonly signing: { readonly kind: string }
  readonly form: unknown
  readonly rate: { readonly rate: number; readonly per: string } | null
  readonly disableAfter: string | null
  readonly tenant: string
  readonly createdAt: number
  readonly active: boolean
  readonly proof: 'none' | 'pending' | 'proven'
  readonly lastSuccessfulDeliveryAt?: number
  readonly health?: {
    readonly status: 'up' | 'degraded' | 'down'
    readonly why: string
    readonly breaker: 'closed' | 'open' | 'half-open' | 'disabled'
    readonly consecutiveFailures: number
    readonly failingSince?: number
    readonly attempts: number
    readonly successRate?: number
    readonly latencyMs?: number
    readonly responseMs?: number
    readonly failedBatches: number
    readonly stuckBatches: number
  }
  readonly waiting?: number
  readonly nextTry?: number
  /** The stored events that a new endpoint is still sent first. */
  readonly history?: { readonly from: number; readonly replay: string }
  readonly transform?: number | null
  /** When each active secret began and when it ends; the newest first. */
  readonly secrets?: readonly { readonly since: number; readonly until?: number }[]
  readonly lastDay?: readonly { readonly at: number; readonly delivered: number; readonly failed: number }[]
}

export interface TestResult {
  readonly event: string
  readonly delivered: boolean
  readonly ms: number
  readonly status?: number
  readonly answer?: string
  readonly error: string
}

export interface TransformVersion {
  readonly version: number
  readonly at: number
  readonly by: string
  readonly code: string
}

export interface Transform {
  readonly current?: TransformVersion
  readonly versions: readonly TransformVersion[]
}

export interface TransformTest {
  readonly input: readonly unknown[]
  readonly output?: unknown
  readonly body?: string
  readonly contentType?: string
  readonly error: string
  readonly line?: number
  readonly console: readonly string[]
  readonly ms: number
}

export interface Delivery {
  readonly id: string
  readonly delivery: string
  readonly subscriber: string
  readonly status: 'PENDING' | 'DELIVERING' | 'SUCCESS' | 'FAILED'
  readonly events: number
  readonly firstEvent?: string
  readonly lastEvent?: string
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly createdAt: number
  readonly deliveredAt?: number
  readonly nextRetryAt?: number
  readonly lastError: string
  readonly attempts: readonly DeliveryAttempt[]
}

export interface LimitPause {
  readonly cause: 'response' | 'code' | 'operator'
  readonly at: number
  readonly ms: number
  readonly status?: number
  readonly url?: string
  readonly flow?: string
  readonly by?: string
}

export interface LimitUsage {
  readonly step: number
  readonly from: number
  readonly spenders: readonly { readonly flow: string; readonly calls: readonly number[]; readonly total: number }[]
  readonly pauses: readonly LimitPause[]
  readonly slots: readonly { readonly at: number; readonly flow: string; readonly key: string; readonly lane: string }[]
}

export interface Limit {
  readonly name: string
  readonly declared: boolean
  readonly pausedUntil?: number
  readonly rate?: number
  readonly per?: number
  readonly burst?: number
  readonly stretch?: number
  readonly busyUntil?: number
  readonly used?: number
  /** The flows that called under it lately or wait for it. */
  readonly flows?: readonly string[]
  readonly waiting?: number
  readonly lastSlot?: number
  readonly paused?: LimitPause
}

export interface Source {
  readonly name: string
  readonly scheme: string
  readonly path: string
  readonly verified?: boolean
  readonly receivedHour?: number
  readonly refusedHour?: number
  readonly lastReceived?: number
  readonly byReason?: Readonly<Record<string, number>>
}

export interface RefusedRequest {
  readonly at: number
  readonly request: string
  readonly source: string
  readonly code: string
  readonly what: string
  readonly fix: string
  readonly method: string
  readonly path: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
  readonly excerpt: string
  readonly checks?: readonly {
    readonly step: string
    readonly state: 'passed' | 'failed' | 'skipped'
    readonly text: string
  }[]
  readonly autopsy?: {
    readonly header?: string
    readonly given?: string
    readonly signedParts?: readonly string[]
    readonly signedBytes?: number
    readonly skewMs?: number
    readonly secretsTried: number
  }
}

export interface Sample {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body64: string
  readonly curl: string
}

export interface Alert {
  readonly name: string
  readonly state: 'clear' | 'pending' | 'raised' | 'easing'
  readonly since?: number
  readonly text: string
  readonly broken?: string
}

export interface Replay {
  readonly id: string
  readonly state: 'running' | 'done' | 'cancelled' | 'stuck'
  readonly filter: {
    readonly source?: string
    readonly type?: string
    readonly tenant?: string
    readonly subject?: string
    readonly lane?: string
    readonly from?: number
    readonly to?: number
  }
  readonly event?: string
  readonly into: readonly string[]
  readonly endpoint?: string
  readonly rate: number
  readonly per: number
  readonly started: number
  readonly ended?: number
  readonly found: number
  readonly scanned: number
  readonly placed: number
  readonly skipped: number
  readonly gone: number
  readonly failed: number
  readonly error: string
  readonly endsAbout?: number
  readonly by?: string
  readonly flows?: Readonly<Record<string, { readonly placed: number; readonly skipped: number }>>
}

export interface ReplayPlan {
  readonly count: number
  readonly exact?: boolean
  readonly bytes?: number
  readonly oldest?: number
  readonly newest?: number
  readonly flows?: readonly {
    readonly flow: string
    readonly placed: number
    readonly skipped: number
    readonly unwanted: number
    readonly failed: number
    readonly lanes: number
  }[]
}

export interface EventHistogram {
  readonly step: number
  readonly from: number
  readonly counts: readonly number[]
  readonly complete: boolean
}

export interface AuditEntry {
  readonly id: number
  readonly at: number
  readonly who: string
  readonly what: string
  readonly chain: string
}

export type AuditCheck =
  | {
      readonly kind: 'whole'
      readonly entries: number
      readonly head?: { readonly id: number; readonly chain: string }
    }
  | {
      readonly kind: 'broken'
      readonly why: 'changed' | 'cut' | 'unknown'
      readonly at: number
      readonly entries: number
    }

export interface ApiKey {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly tenant?: string
  readonly created: number
  readonly by: string
}
