// The one sentence that says why a lane is where it is. Pure: facts in, text out.
import { LAPSES_MAX } from '../model/claim.ts'
import type { LaneState } from '../model/lane-states.ts'
import type { ExplanationFacts } from './explain-facts.ts'
import { obstacles, turnOf } from './explain-obstacles.ts'
import { counted, quoted, span, TEXT_SHOWN, when } from './explain-words.ts'

export function sentenceOf(facts: ExplanationFacts): string {
  const stranger = facts.declared ? '' : `, which is not declared here,`
  const lane = `Lane ${quoted(facts.key)} of flow ${quoted(facts.flow)}${stranger}`
  const clauses = [CLAUSES[facts.laneState](facts), ...obstacles(facts)]
  return `${lane} ${clauses.join('; ')}.`
}

const CLAUSES: Readonly<Record<LaneState | 'empty', (facts: ExplanationFacts) => string>> = {
  empty: (facts) => `is empty: ${[...past(facts), invitation(facts)].join(', and ')}`,
  idle,
  waiting,
  ready: (facts) => `has been ready for ${span(facts.in ?? 0)} with ${content(facts)}${turnOf(facts)}`,
  running,
  lapsed,
  retrying: (facts) => `is retrying: ${failure(facts)}, and the next try ${dueAt(facts)}${left(facts)}${behind(facts)}`,
  again: (facts) => `is to run again: ${begun(facts)}, and its next turn ${dueAt(facts)}${behind(facts)}`,
  blocked: (facts) => `is blocked by ${letter(facts)}${behind(facts, 'until that is retried, dropped or unblocked')}`,
  held: (facts) => `is held by ${by(facts.heldBy, facts.holdReason)} ${holdEnd(facts)}; without that ${unheld(facts)}`,
}

function idle(facts: ExplanationFacts): string {
  if (facts.waiting > 0) return `has ${content(facts)} and no deadline: only a full batch or a person ends its window`
  const { ended, keptUntil, now } = facts
  if (ended === undefined || keptUntil === undefined) {
    return `has nothing to do: ${[...past(facts), invitation(facts)].join(', and ')}`
  }
  return `has nothing to do: its last run ended ${when(ended - now)}, which it remembers for ${span(keptUntil - now)} more`
}

function waiting(facts: ExplanationFacts): string {
  if (facts.waiting === 0) return `waits with ${content(facts)}, due ${when(facts.in ?? 0)}`
  return `waits for its window with ${content(facts)}: due ${when(facts.in ?? 0)}, ${latest(facts)}${adaptive(facts)}`
}

function latest({ latest: cap, deadline, now }: ExplanationFacts): string {
  if (cap === undefined) return 'with no latest moment should more events come'
  return cap === deadline ? 'whatever else comes' : `at the latest ${when(cap - now)} should more events come`
}

function adaptive({ pressure, quiet }: ExplanationFacts): string {
  if (pressure === undefined) return ''
  const now = quiet === undefined ? '' : `, which makes its quiet ${span(quiet)} now`
  return `, under a pressure of ${pressure.toFixed(2)}${now}`
}

function running(facts: ExplanationFacts): string {
  const { now, started = now, leaseEnds } = facts
  const lease = leaseEnds === undefined ? 'has no end' : `ends ${when(leaseEnds - now)} unless it is renewed`
  const parts = [`is running: ${runName(facts)} began ${when(started - now)}`]
  parts.push(`is at attempt ${attempt(facts.attempt, facts)} with ${counted(facts.events ?? 0, 'event')}`)
  if (facts.limit !== undefined) parts.push(slot(facts, facts.limit))
  if (facts.cancelAsked) parts.push('was asked to cancel')
  if (facts.purged) parts.push('has lost its events to a purge')
  return `${parts.join(', ')}, and its lease ${lease}${behind(facts)}`
}

function slot({ limitIn = 0, limitPausedFor }: ExplanationFacts, limit: string): string {
  const paused = limitPausedFor === undefined ? '' : ` (which is paused for ${span(limitPausedFor)} more)`
  return `waits for a slot of limit ${quoted(limit)}${paused} ${when(limitIn)}`
}

function lapsed(facts: ExplanationFacts): string {
  const { now, leaseEnds = now, lapses = 1 } = facts
  const fate = lapses >= LAPSES_MAX ? 'its next turn makes it a dead letter' : `it comes back${comesBack(facts)}`
  const which = `lapse ${lapses} of ${LAPSES_MAX}`
  return `has lapsed: the process of ${runName(facts)} stopped answering and its lease ended ${when(leaseEnds - now)}, ${which}, and ${fate}${behind(facts)}`
}

function comesBack(facts: ExplanationFacts): string {
  const free = facts.served && facts.pausedBy === undefined && !facts.full && facts.ahead === 0
  const events = `with its ${counted(facts.events ?? 0, 'event')}`
  return free && facts.line !== 'suspect' ? ` at once ${events}` : ` ${events} when it gets its turn${turnOf(facts)}`
}

function failure(facts: ExplanationFacts): string {
  const error = facts.error === undefined ? '' : ` (the last error was ${quoted(facts.error, TEXT_SHOWN)})`
  return `attempt ${attempt(facts.tries, facts)} of ${runName(facts)} failed${error}`
}

function left({ triesLeft }: ExplanationFacts): string {
  return triesLeft === undefined ? '' : `, with ${counted(triesLeft, 'try', 'tries')} left`
}

function begun(facts: ExplanationFacts): string {
  const { againSince, now } = facts
  const run = `${runName(facts)} with ${counted(facts.events ?? 0, 'event')}`
  if (facts.putOffBy !== undefined) return `${run} was put off by limit ${JSON.stringify(facts.putOffBy)}`
  return againSince === undefined ? `${run} was given back` : `${run} first asked for it ${when(againSince - now)}`
}

function dueAt(facts: ExplanationFacts): string {
  const wait = facts.in ?? Infinity
  if (wait > 0) return wait === Infinity ? 'has no date' : `is due ${when(wait)}`
  return `has been due for ${span(wait)}${turnOf(facts)}`
}

function letter(facts: ExplanationFacts): string {
  const { blockedBy, blockedSince, blockedReason = '', blockedTries = 0, now } = facts
  if (blockedBy === undefined || blockedSince === undefined) return 'a dead letter that was not found'
  const tries = counted(blockedTries, 'try', 'tries')
  return `dead letter ${quoted(blockedBy)}, which died ${when(blockedSince - now)} after ${tries} because of ${quoted(blockedReason, TEXT_SHOWN)}`
}

function holdEnd({ heldUntil, now }: ExplanationFacts): string {
  return heldUntil === undefined ? 'until somebody lifts that' : `for ${span(heldUntil - now)} more`
}

function unheld(facts: ExplanationFacts): string {
  switch (facts.behindHold) {
    case 'blocked':
      return `it would be blocked by ${letter(facts)}${behind(facts)}`
    case 'retrying':
      return `it would be retrying: ${failure(facts)}${left(facts)}${behind(facts)}`
    case 'again':
      return `it would run again: ${begun(facts)}${behind(facts)}`
    case 'lapsed':
      return `it would come back after lapse ${facts.lapses} of ${LAPSES_MAX} of ${runName(facts)}${behind(facts)}`
    case 'ready':
    case 'waiting':
      return `it would be ${facts.behindHold} with ${content(facts)}`
    case 'idle':
    case 'running':
    case 'held':
    case undefined:
      return facts.waiting > 0 ? `it would have ${content(facts)} and no deadline` : 'it would have nothing to do'
  }
}

function by(who = '', why = ''): string {
  return `${quoted(who)} because of ${quoted(why, TEXT_SHOWN)}`
}

function runName({ run = '', kind }: ExplanationFacts): string {
  const what = kind === 'letter' ? 'run of dead letter' : kind === 'replay' ? 'replay run' : 'run'
  return `${what} ${quoted(run)}`
}

function attempt(n = 0, { triesOf }: ExplanationFacts): string {
  return triesOf === undefined ? `${n}` : `${n} of ${triesOf}`
}

/** All that waits in the lane itself. */
function content({ waiting: events, replays, queued, queuedLetter }: ExplanationFacts): string {
  const parts: string[] = []
  const first = queuedLetter === undefined ? '' : ` (first ${quoted(queuedLetter)})`
  if (queued > 0) parts.push(`${counted(queued, 'dead letter')} queued by hand${first}`)
  if (events > 0) parts.push(counted(events, 'event'))
  if (replays > 0) parts.push(counted(replays, 'replay'))
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}

/** What waits for the run, or for whatever else comes first. */
function behind(facts: ExplanationFacts, until = ''): string {
  const some = facts.waiting + facts.replays + facts.queued
  if (some === 0) return until && `, ${until}`
  const due = facts.leftOver ? ', left over and due when that ends' : ''
  return `; behind it ${some === 1 ? 'waits' : 'wait'} ${content(facts)}${due}${until && ` ${until}`}`
}

function past({
  lastRun,
  lastRunKind = '',
  lastRunEnded,
  dead = 0,
  deadExact,
  now,
}: ExplanationFacts): readonly string[] {
  const parts: string[] = []
  if (lastRun !== undefined && lastRunEnded !== undefined)
    parts.push(`the newest run on record, ${quoted(lastRun)}, ended as ${lastRunKind} ${when(lastRunEnded - now)}`)
  if (dead > 0) parts.push(`it has ${deadExact === false ? 'at least ' : ''}${counted(dead, 'dead letter')}`)
  return parts
}

function invitation({ declared, keyed, globs }: ExplanationFacts): string {
  if (!declared) return 'nothing waits in it'
  if (!keyed) return 'each event of this flow is a lane of its own that ends with its run'
  if (globs === undefined) return 'an event with this key that the flow wants opens it'
  return `an event with this key that matches ${globs.map((glob) => quoted(glob)).join(' or ')} opens it`
}
