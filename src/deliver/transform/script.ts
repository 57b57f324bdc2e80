// A script of a subscriber, as the threads get it, and what comes of it.
import type { Millis } from '../../clock.ts'

export interface ScriptLimits {
  /** Of the processor. */
  readonly time: Millis
  /** In bytes, for all that the script holds, its input included. */
  readonly memory: number
}

/** 1 s and 32 MB. */
export const SCRIPT_LIMITS: ScriptLimits = { time: 1_000, memory: 32 * 1_024 * 1_024 }

export interface ScriptCall {
  /** An ES module whose default export is a function. */
  readonly code: string
  /** The arguments of the function, as a JSON list. Without it, the code is only checked. */
  readonly input?: string
  /** What `Date.now()` returns. */
  readonly time: Millis
  /** A whole number from which `Math.random()` starts. */
  readonly seed: number
  readonly limits: ScriptLimits
}

export interface ScriptFailure {
  /** `threw` covers every fault of the script itself that stays within its limits. */
  readonly why: 'threw' | 'time' | 'memory' | 'crashed'
  readonly message: string
  /** The line of the code, if known. */
  readonly line?: number
}

export interface ScriptResult {
  /** What the function returned, as JSON; undefined for nothing. */
  readonly output?: string
  readonly failure?: ScriptFailure
  /** The lines that the script wrote, each with at most 1,000 characters. */
  readonly console: readonly string[]
  readonly ms: Millis
}
