// What stands between a lane and its turn that is not its own doing: its place, a pause, no slots, nobody to serve it.
import type { ExplanationFacts } from './explain-facts.ts'
import { counted, quoted, span, TEXT_SHOWN, when } from './explain-words.ts'

/** Its place in line, for a lane whose deadline has passed. */
export function turnOf(facts: ExplanationFacts): string {
  const { ahead, aheadExact, line, group } = facts
  if (ahead === undefined) return ''
  const whose = group === undefined ? '' : ` of its group ${quoted(group)}, groups taking turns,`
  const which = line === 'healthy' ? '' : ` among the ${line} lanes, which have few slots,`
  const place = `${whose}${which}`.replace(/,$/, '')
  if (aheadExact === false) return `, with at least ${counted(ahead, 'lane')} ahead in the line${place}`
  return ahead === 0 ? `, first in the line${place}` : `, number ${ahead + 1} in the line${place}`
}

/** Whatever is true of the flow and matters in this state. */
export function obstacles(facts: ExplanationFacts): readonly string[] {
  const found: string[] = []
  const isLive = facts.laneState === 'running'
  if (isLive && facts.heldBy !== undefined && !facts.holdOver) {
    const end =
      facts.heldUntil === undefined ? 'until somebody lifts that' : `for ${span(facts.heldUntil - facts.now)} more`
    found.push(`it is also held by ${quoted(facts.heldBy)} ${end}`)
  }
  if (facts.holdOver && facts.heldBy !== undefined && facts.heldUntil !== undefined) {
    found.push(`a hold by ${quoted(facts.heldBy)} ended ${when(facts.heldUntil - facts.now)}`)
  }
  if (facts.pausedBy !== undefined) found.push(pause(facts, facts.pausedBy, isLive))
  // Whoever runs it serves it.
  if (!facts.served && !isLive) found.push('no process serves this flow')
  else if (facts.ahead !== undefined && facts.full) found.push(full(facts))
  else if (facts.ahead !== undefined && facts.processFull)
    found.push('this process has all the runs it may have at once')
  if (facts.lingers && !isLive) found.push('an earlier handler of it has not returned in this process')
  return found
}

function pause({ pauseReason = '', pausedSince, now }: ExplanationFacts, by: string, isLive: boolean): string {
  const since = pausedSince === undefined ? '' : ` ${when(pausedSince - now)}`
  const still = isLive ? ', which lets this run finish' : ''
  return `the flow was paused by ${quoted(by)}${since} because of ${quoted(pauseReason, TEXT_SHOWN)}${still}`
}

function full({ concurrency, group }: ExplanationFacts): string {
  if (concurrency === undefined) return 'all slots of the flow are taken'
  const each = group === undefined ? '' : ' that a group may have'
  return concurrency === 1
    ? `the one slot${each} of the flow is taken`
    : `all ${concurrency} slots${each} of the flow are taken`
}
