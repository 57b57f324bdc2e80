// Describes obstacles outside the lane: its position in the queue, a pause, no permits, no process for the flow.
import type { ExplanationFacts } from './facts.ts'
import { formatCount, quote, formatDuration, MAX_TEXT, formatRelativeTime } from './format.ts'

/** `describePosition` describes the position in the queue of a lane whose deadline has passed. */
export function describePosition(facts: ExplanationFacts): string {
  const { ahead, aheadExact, line, group } = facts
  if (ahead === undefined) return ''
  const whose = group === undefined ? '' : ` of its group ${quote(group)}, which takes turns with other groups,`
  const which = line === 'healthy' ? '' : ` among the ${line} lanes, which have few slots,`
  const scope = `${whose}${which}`.replace(/,$/, '')
  if (aheadExact === false) return `, with at least ${formatCount(ahead, 'lane')} ahead in the queue${scope}`
  return ahead === 0 ? `, first in the queue${scope}` : `, number ${ahead + 1} in the queue${scope}`
}

/** `describeObstacles` lists what is true of the flow and matters in this state. */
export function describeObstacles(facts: ExplanationFacts): readonly string[] {
  const found: string[] = []
  const isLive = facts.laneState === 'running'
  if (isLive && facts.heldBy !== undefined && !facts.holdOver) {
    const end =
      facts.heldUntil === undefined
        ? 'until an operator lifts it'
        : `for ${formatDuration(facts.heldUntil - facts.now)} more`
    found.push(`it is also held by ${quote(facts.heldBy)} ${end}`)
  }
  if (facts.holdOver && facts.heldBy !== undefined && facts.heldUntil !== undefined) {
    found.push(`a hold by ${quote(facts.heldBy)} ended ${formatRelativeTime(facts.heldUntil - facts.now)}`)
  }
  if (facts.pausedBy !== undefined) found.push(describePause(facts, facts.pausedBy, isLive))
  // A flow with a live run is served by the process that executes it.
  if (!facts.served && !isLive) found.push('no process serves this flow')
  else if (facts.ahead !== undefined && facts.full) found.push(describeFull(facts))
  else if (facts.ahead !== undefined && facts.processFull)
    found.push('this process already has the maximum number of runs')
  if (facts.claimError !== undefined && !isLive) found.push(`claims of this flow fail: ${facts.claimError}`)
  if (facts.lingers && !isLive) found.push('an earlier handler of it has not returned in this process')
  return found
}

function describePause({ pauseReason = '', pausedSince, now }: ExplanationFacts, by: string, isLive: boolean): string {
  const since = pausedSince === undefined ? '' : ` ${formatRelativeTime(pausedSince - now)}`
  const still = isLive ? ', which lets this run finish' : ''
  return `the flow was paused by ${quote(by)}${since} because of ${quote(pauseReason, MAX_TEXT)}${still}`
}

function describeFull({ concurrency, group }: ExplanationFacts): string {
  if (concurrency === undefined) return 'all permits of the flow are taken'
  const each = group === undefined ? '' : ' that a group may have'
  return concurrency === 1
    ? `the one permit${each} of the flow is taken`
    : `all ${concurrency} permits${each} of the flow are taken`
}
