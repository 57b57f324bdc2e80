// `judge` says in one sentence whether an app keeps up. Pure: the same facts give the same verdict.
import type { Millis } from '../../clock.ts'
import { formatCount, formatDuration, quote } from '../explain/format.ts'

type VerdictKind = 'idle' | 'keeping-up' | 'falling-behind' | 'stalled'
type StallReason = 'paused' | 'unserved' | 'no-slots' | 'unknown'

export interface Verdict {
  readonly verdict: VerdictKind
  /** Why no run begins; only if the verdict is `stalled`. */
  readonly reason?: StallReason
  readonly sentence: string
}

export interface VerdictFacts {
  readonly now: Millis
  /** How many lanes are in line, and the first deadline among them. */
  readonly inLine: number
  readonly oldestDue: Millis | undefined
  readonly lastRunBegan: Millis | undefined
  readonly lastEvent: Millis | undefined
  /** How late runs began: the latest of each of the last minutes, the current one last. */
  readonly lateness: readonly Millis[]
  /** The flow of the lane that has been in line the longest. */
  readonly flow: VerdictFlow | undefined
}

export interface VerdictFlow {
  readonly name: string
  readonly paused: { readonly by: string; readonly reason: string } | undefined
  readonly isServed: boolean
  /** All runs that the flow, or this process, may have at once are live. */
  readonly isFull: boolean
}

/** Nothing arrived for this long: the app is idle. */
const IDLE_AFTER: Millis = 5 * 60_000
/** Something is in line and no run began for this long: the app is stalled. */
const STALLED_AFTER: Millis = 60_000
/** Lanes that wait less than this are no backlog. */
const LATE: Millis = 5_000
/** How far ahead `falling-behind` looks. */
const AHEAD: Millis = 30 * 60_000

export function judge(facts: VerdictFacts): Verdict {
  const { now, oldestDue, lastRunBegan, lastEvent } = facts
  if (oldestDue === undefined) {
    const isIdle = lastEvent === undefined || now - lastEvent >= IDLE_AFTER
    return isIdle ? { verdict: 'idle', sentence: describeIdle(facts) } : KEEPING_UP
  }
  const late = now - oldestDue
  const idleFor = now - Math.max(oldestDue, lastRunBegan ?? 0)
  if (idleFor >= STALLED_AFTER) return describeStall(facts, idleFor)
  const growth = computeGrowth(facts.lateness, late)
  if (late >= LATE && growth > 0) {
    const soon = formatDuration(late + (growth * AHEAD) / MINUTE)
    const sentence = `Falling behind: ${describeLine(facts)}; at this pace it will be about ${soon} in ${formatDuration(AHEAD)}.`
    return { verdict: 'falling-behind', sentence }
  }
  return late < LATE
    ? KEEPING_UP
    : { verdict: 'keeping-up', sentence: `Keeping up: ${describeLine(facts)}, and the delay does not grow.` }
}

const MINUTE: Millis = 60_000
const KEEPING_UP: Verdict = { verdict: 'keeping-up', sentence: 'Keeping up: throughput matches arrivals.' }

/** Returns by how much the lateness grew per minute, if it grew in each of the last two. */
function computeGrowth(lateness: readonly Millis[], late: Millis): Millis {
  const [before = 0, last = 0] = lateness.slice(-3, -1)
  return before < last && last < late ? (late - before) / 2 : 0
}

function describeLine({ inLine, oldestDue = 0, now }: VerdictFacts): string {
  const late = formatDuration(now - oldestDue)
  return inLine === 1
    ? `1 lane is in line, for ${late}`
    : `${formatCount(inLine, 'lane')} are in line, the oldest for ${late}`
}

function describeIdle({ lastEvent, now }: VerdictFacts): string {
  if (lastEvent === undefined) return 'Idle: no event has arrived yet.'
  return `Idle: nothing is due, and no event has arrived for ${formatDuration(now - lastEvent)}.`
}

function describeStall(facts: VerdictFacts, idleFor: Millis): Verdict {
  const { flow, inLine } = facts
  const reason = findStallReason(flow)
  const due = `${formatCount(inLine, 'lane')} ${inLine === 1 ? 'is' : 'are'} in line and no run has begun for ${formatDuration(idleFor)}`
  return { verdict: 'stalled', reason, sentence: `Stalled: ${due}. ${describeReason(flow, reason)}` }
}

function findStallReason(flow: VerdictFlow | undefined): StallReason {
  if (flow === undefined) return 'unknown'
  if (flow.paused !== undefined) return 'paused'
  if (!flow.isServed) return 'unserved'
  return flow.isFull ? 'no-slots' : 'unknown'
}

function describeReason(flow: VerdictFlow | undefined, reason: StallReason): string {
  const name = quote(flow?.name ?? '')
  switch (reason) {
    case 'paused':
      return `The flow ${name} was paused by ${quote(flow?.paused?.by ?? '')}: ${quote(flow?.paused?.reason ?? '')}.`
    case 'unserved':
      return `No process serves the flow ${name}.`
    case 'no-slots':
      return `All runs that the flow ${name} may have at once are in progress.`
    case 'unknown':
      return 'Look at the log of the processes: the store may reject their calls.'
  }
}
