// `buildSentence` says in one sentence why a lane is in its state. It is pure: facts in, text out.
import { LAPSES_MAX } from '../../model/claim.ts'
import type { LaneState } from '../../model/lane-states.ts'
import type { ExplanationFacts } from './facts.ts'
import { describeObstacles, describePosition } from './obstacles.ts'
import { formatCount, quote, formatDuration, MAX_TEXT, formatRelativeTime } from './format.ts'

export function buildSentence(facts: ExplanationFacts): string {
  const undeclared = facts.declared ? '' : `, which is not declared here,`
  const lane = `Lane ${quote(facts.key)} of flow ${quote(facts.flow)}${undeclared}`
  const clauses = [CLAUSES[facts.laneState](facts), ...describeObstacles(facts)]
  return `${lane} ${clauses.join('; ')}.`
}

const CLAUSES: Readonly<Record<LaneState | 'empty', (facts: ExplanationFacts) => string>> = {
  empty: (facts) => `is empty: ${[...describePast(facts), describeHowToFill(facts)].join(', and ')}`,
  idle: describeIdle,
  waiting: describeWaiting,
  ready: (facts) =>
    `has been ready for ${formatDuration(facts.in ?? 0)} with ${describeContent(facts)}${describePosition(facts)}`,
  running: describeRunning,
  lapsed: describeLapsed,
  retrying: (facts) =>
    `is retrying: ${describeFailure(facts)}, and the next attempt ${describeDue(facts)}${describeTriesLeft(facts)}${describeBehind(facts)}`,
  snoozed: (facts) => `is snoozed: ${describeStartedRun(facts)}, and it ${describeDue(facts)}${describeBehind(facts)}`,
  blocked: (facts) =>
    `is blocked by ${describeDeadLetter(facts)}${describeBehind(facts, 'until that is retried, dropped or unblocked')}`,
  held: (facts) =>
    `is held by ${describeActor(facts.heldBy, facts.holdReason)} ${describeHoldEnd(facts)}; without that ${describeWithoutHold(facts)}`,
}

function describeIdle(facts: ExplanationFacts): string {
  if (facts.waiting > 0)
    return `has ${describeContent(facts)} and no deadline: a full batch or an operator ends its window, or the end of the history that a new endpoint gets first`
  const { ended, keptUntil, now } = facts
  if (ended === undefined || keptUntil === undefined) {
    return `has nothing to do: ${[...describePast(facts), describeHowToFill(facts)].join(', and ')}`
  }
  return `has nothing to do: its last run ended ${formatRelativeTime(ended - now)}, which it remembers for ${formatDuration(keptUntil - now)} more`
}

function describeWaiting(facts: ExplanationFacts): string {
  if (facts.waiting === 0) return `waits with ${describeContent(facts)}, due ${formatRelativeTime(facts.in ?? 0)}`
  return `waits for its window with ${describeContent(facts)}: due ${formatRelativeTime(facts.in ?? 0)}, ${describeLatest(facts)}${describeAdaptiveWindow(facts)}`
}

function describeLatest({ latest: cap, deadline, now }: ExplanationFacts): string {
  if (cap === undefined) return 'without a latest time if more events arrive'
  return cap === deadline
    ? 'even if more events arrive'
    : `at the latest ${formatRelativeTime(cap - now)} if more events arrive`
}

function describeAdaptiveWindow({ pressure, quiet }: ExplanationFacts): string {
  if (pressure === undefined) return ''
  const now = quiet === undefined ? '' : `, which makes its quiet ${formatDuration(quiet)} now`
  return `, under a pressure of ${pressure.toFixed(2)}${now}`
}

function describeRunning(facts: ExplanationFacts): string {
  const { now, started = now, leaseEnds } = facts
  const lease =
    leaseEnds === undefined ? 'has no end' : `ends ${formatRelativeTime(leaseEnds - now)} unless it is renewed`
  const parts = [`is running: ${runName(facts)} began ${formatRelativeTime(started - now)}`]
  parts.push(`is at attempt ${describeAttempt(facts.attempt, facts)} with ${formatCount(facts.events ?? 0, 'event')}`)
  if (facts.limit !== undefined) parts.push(describeSlotWait(facts, facts.limit))
  if (facts.cancelAsked) parts.push('was asked to cancel')
  if (facts.purged) parts.push('has lost its events to a purge')
  return `${parts.join(', ')}, and its lease ${lease}${describeBehind(facts)}`
}

function describeSlotWait({ limitIn = 0, limitPausedFor }: ExplanationFacts, limit: string): string {
  const paused = limitPausedFor === undefined ? '' : ` (which is paused for ${formatDuration(limitPausedFor)} more)`
  return `waits for a slot of limit ${quote(limit)}${paused} ${formatRelativeTime(limitIn)}`
}

function describeLapsed(facts: ExplanationFacts): string {
  const { now, leaseEnds = now, lapses = 1 } = facts
  const fate =
    lapses >= LAPSES_MAX ? 'the next claim makes it a dead letter' : `it comes back${describeComeback(facts)}`
  const which = `lapse ${lapses} of ${LAPSES_MAX}`
  return `has lapsed: the process of ${runName(facts)} stopped renewing the lease, which ended ${formatRelativeTime(leaseEnds - now)}, ${which}, and ${fate}${describeBehind(facts)}`
}

function describeComeback(facts: ExplanationFacts): string {
  const free = facts.served && facts.pausedBy === undefined && !facts.full && facts.ahead === 0
  const events = `with its ${formatCount(facts.events ?? 0, 'event')}`
  return free && facts.line !== 'suspect'
    ? ` at once ${events}`
    : ` ${events} when it gets its turn${describePosition(facts)}`
}

function describeFailure(facts: ExplanationFacts): string {
  const error = facts.error === undefined ? '' : ` (the last error was ${quote(facts.error, MAX_TEXT)})`
  return `attempt ${describeAttempt(facts.tries, facts)} of ${runName(facts)} failed${error}`
}

function describeTriesLeft({ triesLeft }: ExplanationFacts): string {
  return triesLeft === undefined ? '' : `, with ${formatCount(triesLeft, 'attempt')} left`
}

function describeStartedRun(facts: ExplanationFacts): string {
  const { snoozedSince, now } = facts
  const run = `${runName(facts)} with ${formatCount(facts.events ?? 0, 'event')}`
  if (facts.deferredBy !== undefined) return `${run} was deferred by limit ${JSON.stringify(facts.deferredBy)}`
  return snoozedSince === undefined
    ? `${run} was given back`
    : `${run} first snoozed ${formatRelativeTime(snoozedSince - now)}`
}

function describeDue(facts: ExplanationFacts): string {
  const wait = facts.in ?? Infinity
  if (wait > 0) return wait === Infinity ? 'has no date' : `is due ${formatRelativeTime(wait)}`
  return `has been due for ${formatDuration(wait)}${describePosition(facts)}`
}

function describeDeadLetter(facts: ExplanationFacts): string {
  const { blockedBy, blockedSince, blockedReason = '', blockedTries = 0, now } = facts
  if (blockedBy === undefined || blockedSince === undefined) return 'a dead letter that was not found'
  const tries = formatCount(blockedTries, 'attempt')
  return `dead letter ${quote(blockedBy)}, which died ${formatRelativeTime(blockedSince - now)} after ${tries} because of ${quote(blockedReason, MAX_TEXT)}`
}

function describeHoldEnd({ heldUntil, now }: ExplanationFacts): string {
  return heldUntil === undefined ? 'until an operator lifts it' : `for ${formatDuration(heldUntil - now)} more`
}

function describeWithoutHold(facts: ExplanationFacts): string {
  switch (facts.behindHold) {
    case 'blocked':
      return `it would be blocked by ${describeDeadLetter(facts)}${describeBehind(facts)}`
    case 'retrying':
      return `it would be retrying: ${describeFailure(facts)}${describeTriesLeft(facts)}${describeBehind(facts)}`
    case 'snoozed':
      return `it would run again: ${describeStartedRun(facts)}${describeBehind(facts)}`
    case 'lapsed':
      return `it would come back after lapse ${facts.lapses} of ${LAPSES_MAX} of ${runName(facts)}${describeBehind(facts)}`
    case 'ready':
    case 'waiting':
      return `it would be ${facts.behindHold} with ${describeContent(facts)}`
    case 'idle':
    case 'running':
    case 'held':
    case undefined:
      return facts.waiting > 0
        ? `it would have ${describeContent(facts)} and no deadline`
        : 'it would have nothing to do'
  }
}

function describeActor(who = '', why = ''): string {
  return `${quote(who)} because of ${quote(why, MAX_TEXT)}`
}

function runName({ run = '', kind }: ExplanationFacts): string {
  const what = kind === 'dead-letter' ? 'run of dead letter' : kind === 'replay' ? 'replay run' : 'run'
  return `${what} ${quote(run)}`
}

function describeAttempt(n = 0, { triesOf }: ExplanationFacts): string {
  return triesOf === undefined ? `${n}` : `${n} of ${triesOf}`
}

/** Describes everything that waits in the lane itself. */
function describeContent({ waiting: events, replays, queued, queuedDeadLetter }: ExplanationFacts): string {
  const parts: string[] = []
  const first = queuedDeadLetter === undefined ? '' : ` (first ${quote(queuedDeadLetter)})`
  if (queued > 0) parts.push(`${formatCount(queued, 'dead letter')} queued by hand${first}`)
  if (events > 0) parts.push(formatCount(events, 'event'))
  if (replays > 0) parts.push(formatCount(replays, 'replay'))
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}

/** Describes the events that wait behind the run or dead letter. */
function describeBehind(facts: ExplanationFacts, until = ''): string {
  const some = facts.waiting + facts.replays + facts.queued
  if (some === 0) return until && `, ${until}`
  const due = facts.leftOver ? ', left over and due when that ends' : ''
  return `; behind it ${some === 1 ? 'waits' : 'wait'} ${describeContent(facts)}${due}${until && ` ${until}`}`
}

function describePast({
  lastRun,
  lastRunKind = '',
  lastRunEnded,
  dead = 0,
  deadExact,
  event,
  eventNote,
  skipped = 0,
  skippedOf = 0,
  skippedLast,
  skippedAt,
  now,
}: ExplanationFacts): readonly string[] {
  const parts: string[] = []
  if (lastRun !== undefined && lastRunEnded !== undefined)
    parts.push(
      `the newest run on record, ${quote(lastRun)}, ended as ${lastRunKind} ${formatRelativeTime(lastRunEnded - now)}`,
    )
  if (event !== undefined && eventNote !== undefined && eventNote !== '')
    parts.push(`the event with this id is stored: ${eventNote}`)
  if (skipped > 0 && skippedLast !== undefined && skippedAt !== undefined)
    parts.push(
      `the flow found no key in ${skipped} of the newest ${formatCount(skippedOf, 'event')}, the last of them ${quote(skippedLast)} ${formatRelativeTime(skippedAt - now)}`,
    )
  if (dead > 0) parts.push(`it has ${deadExact === false ? 'at least ' : ''}${formatCount(dead, 'dead letter')}`)
  return parts
}

function describeHowToFill({ declared, keyed, globs }: ExplanationFacts): string {
  if (!declared) return 'nothing waits in it'
  if (!keyed) return 'each event of this flow is a lane of its own that ends with its run'
  if (globs === undefined) return 'an event with this key that the flow wants opens it'
  return `an event with this key that matches ${globs.map((glob) => quote(glob)).join(' or ')} opens it`
}
