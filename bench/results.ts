// The results of the benches, in the form in which they are printed, written to JSON and judged.
import type { Spread } from './figures.ts'
import type { DueOrder, Measurement } from './sides.ts'

export type ComparedBench = 'append' | 'drain'
export type BenchName = ComparedBench | 'workers' | 'lanes' | 'ingest' | 'deliver'

/** Whether the figure missed the target by being below or above it. */
export type Verdict = 'met' | 'below' | 'above'

export type Target =
  | { readonly kind: 'at least'; readonly bound: number; readonly goal?: number }
  | { readonly kind: 'at most'; readonly bound: number }

export interface Round {
  readonly side: string
  readonly round: number
  readonly measurement: Measurement
}

/** The subject against the peer in each round, so that a disturbance of a whole round does not change a ratio. */
export interface Ratio {
  readonly spread: Spread
  readonly target: Target
  readonly verdict: Verdict
}

export interface Comparison {
  readonly kind: 'comparison'
  readonly bench: ComparedBench
  readonly rounds: readonly Round[]
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  /** Absent if there is no subject to compare. */
  readonly ratio?: Ratio
}

export interface ClaimTimes {
  readonly lanes: number
  readonly due: DueOrder
  readonly claims: number
  readonly medianMicros: number
  readonly meanMicros: number
  readonly p95Micros: number
  /** The maximum memory of the process, filling included. */
  readonly peakMegabytes: number
}

export interface LaneGrowth {
  readonly kind: 'lanes'
  readonly bench: 'lanes'
  readonly times: readonly ClaimTimes[]
  readonly growth: readonly (Ratio & { readonly due: DueOrder; readonly lanes: number; readonly micros: Spread })[]
  readonly memory: { readonly megabytes: Spread; readonly target: Target; readonly verdict: Verdict }
}

/** Plain durable code without any feature of Sluice, against a side that stores nothing: the best that is possible. */
export interface Floor {
  readonly side: string
  readonly of: string
  readonly spread: Spread
}

export interface Ingest {
  readonly kind: 'ingest'
  readonly bench: 'ingest'
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  readonly ratios: readonly (Ratio & { readonly side: string })[]
  /** The target for the same store, if one exists. */
  readonly floor: Floor | undefined
  /** Latency of responses in milliseconds, at a part of the maximum rate. */
  readonly calm: {
    readonly perSecond: number
    readonly p50: number
    readonly p99: number
    readonly refused: number
    readonly target: Target
    readonly verdict: Verdict
  }
}

export interface Deliver {
  readonly kind: 'deliver'
  readonly bench: 'deliver'
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  readonly ratios: readonly (Ratio & { readonly side: string })[]
  readonly floor: Floor
  /** CPU time of one POST, over all threads of the side. It is steadier than the rate if others use the machine. */
  readonly cpu: readonly { readonly side: string; readonly micros: Spread }[]
}

/** Worker processes on PostgreSQL. Each ratio compares the best of Sluice with the best of the side. */
export interface WorkersResult {
  readonly kind: 'workers'
  readonly bench: 'workers'
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  readonly ratios: readonly (Ratio & { readonly side: string })[]
}

export type BenchResult =
  | Comparison
  | WorkersResult
  | LaneGrowth
  | Ingest
  | Deliver
  | { readonly kind: 'skipped'; readonly bench: BenchName; readonly why: string }
  | { readonly kind: 'failed'; readonly bench: BenchName; readonly why: string }

export function judge(value: number, target: Target): Verdict {
  switch (target.kind) {
    case 'at least':
      return value >= target.bound ? 'met' : 'below'
    case 'at most':
      return value <= target.bound ? 'met' : 'above'
  }
}

export function verdictsOf(result: BenchResult): readonly Verdict[] {
  switch (result.kind) {
    case 'comparison':
      return result.ratio === undefined ? [] : [result.ratio.verdict]
    case 'lanes':
      return [...result.growth.map((grown) => grown.verdict), result.memory.verdict]
    case 'ingest':
      return [...result.ratios.map((ratio) => ratio.verdict), result.calm.verdict]
    case 'workers':
    case 'deliver':
      return result.ratios.map((ratio) => ratio.verdict)
    case 'skipped':
    case 'failed':
      return []
  }
}
