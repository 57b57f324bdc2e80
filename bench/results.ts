// What the benches find out, in the form in which it is printed, written to JSON and judged.
import type { Spread } from './figures.ts'
import type { DueOrder, Measurement } from './sides.ts'

export type ComparedBench = 'append' | 'drain'
export type BenchName = ComparedBench | 'workers' | 'lanes' | 'ingest' | 'deliver'

/** 'below' and 'above' say on which side of what was asked the figure missed. */
export type Verdict = 'met' | 'below' | 'above'

export type Asked =
  | { readonly kind: 'at least'; readonly bound: number; readonly hope?: number }
  | { readonly kind: 'at most'; readonly bound: number }

export interface Round {
  readonly side: string
  readonly round: number
  readonly measurement: Measurement
}

/** The subject against the peer in each round, so that what disturbs a whole round disturbs no ratio. */
export interface Ratio {
  readonly spread: Spread
  readonly asked: Asked
  readonly verdict: Verdict
}

export interface Comparison {
  readonly kind: 'comparison'
  readonly bench: ComparedBench
  readonly rounds: readonly Round[]
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  /** Absent while there is no subject to compare. */
  readonly ratio?: Ratio
}

export interface ClaimTimes {
  readonly lanes: number
  readonly due: DueOrder
  readonly claims: number
  readonly medianMicros: number
  readonly meanMicros: number
  readonly p95Micros: number
  /** The most memory the process had at any time, filling included. */
  readonly peakMegabytes: number
}

export interface LaneGrowth {
  readonly kind: 'lanes'
  readonly bench: 'lanes'
  readonly times: readonly ClaimTimes[]
  readonly growth: readonly (Ratio & { readonly due: DueOrder; readonly lanes: number; readonly micros: Spread })[]
  readonly memory: { readonly megabytes: Spread; readonly asked: Asked; readonly verdict: Verdict }
}

/** Plain durable code that does none of what Sluice is for, against a side that keeps nothing: what is left to be had. */
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
  /** Of the same store; undefined where there is none. */
  readonly floor: Floor | undefined
  /** At a part of the rate it can take: how long an answer takes, in milliseconds. */
  readonly calm: {
    readonly perSecond: number
    readonly p50: number
    readonly p99: number
    readonly refused: number
    readonly asked: Asked
    readonly verdict: Verdict
  }
}

export interface Deliver {
  readonly kind: 'deliver'
  readonly bench: 'deliver'
  readonly rates: readonly { readonly side: string; readonly perSecond: Spread }[]
  readonly ratios: readonly (Ratio & { readonly side: string })[]
  readonly floor: Floor
  /** Of one POST, all threads of the side together: steadier than the rate where others use the machine. */
  readonly cpu: readonly { readonly side: string; readonly micros: Spread }[]
}

/** Worker processes on PostgreSQL; each ratio is of the best of Sluice to the best of the side. */
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

export function judge(value: number, asked: Asked): Verdict {
  switch (asked.kind) {
    case 'at least':
      return value >= asked.bound ? 'met' : 'below'
    case 'at most':
      return value <= asked.bound ? 'met' : 'above'
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
