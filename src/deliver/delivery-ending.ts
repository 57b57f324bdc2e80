// `toEnding` maps the report of a delivery to the ending of its run.
import type { Duration } from '../model/duration.ts'
import { SluiceError } from '../errors.ts'
import { defer, done, drop, partial, PermanentError, retry, type Ending, type FailedEvent } from '../model/endings.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { DeliveryReport, DeliveryResult } from './delivery.ts'

/** A failure on our side is retried soon. */
const OWN_FAILURE_DELAY: Duration = '5s'
const WAITING_FOR_PROBE = 'The endpoint fails; another batch tries it.'

/** `DeliveryProgress` is the state of a run that was interrupted between the POSTs of its events. */
export interface DeliveryProgress {
  /** The last event that was delivered. */
  readonly sent: string
}

/** `toEnding` ends a run. With one POST for each event, the delivered events are done even if the run fails later. */
export function toEnding(report: DeliveryReport, events: readonly FlowEvent[], isLast: boolean): Ending {
  const { result, rest, tried } = report
  const delivered = events.length - rest.length
  if (result.kind === 'retry' && (delivered > 0 || (isLast && tried < rest.length))) {
    return partial({ failed: toFailedEvents(report, result.reason, false), after: result.after ?? 0 })
  }
  if (result.kind === 'dead' && (delivered > 0 || tried < rest.length)) {
    return partial({ failed: toFailedEvents(report, result.reason, true) })
  }
  const ending = toWholeEnding(result)
  const sent = events[delivered - 1]?.id
  if (ending.kind !== 'given-back' || sent === undefined) return ending
  return defer({ ...ending, state: { sent } satisfies DeliveryProgress })
}

function toFailedEvents({ rest, tried }: DeliveryReport, reason: string, permanent: boolean): readonly FailedEvent[] {
  return rest.map(({ id }, at) => (at < tried ? { id, reason, permanent } : { id, reason, untried: true }))
}

function toWholeEnding(outcome: DeliveryResult): Ending {
  switch (outcome.kind) {
    case 'delivered':
      return done
    case 'partly':
      return partial({ failed: outcome.failed.map((id) => ({ id, reason: outcome.reason })) })
    case 'retry':
      return retry({ after: outcome.after ?? 0, reason: outcome.reason })
    case 'unbuilt':
      return retry({ reason: outcome.reason })
    case 'dead':
      throw new PermanentError(outcome.reason)
    case 'removed':
      return drop('The endpoint was removed.')
    case 'wait':
      return defer({ after: outcome.after, why: WAITING_FOR_PROBE })
    case 'later':
      return defer({ after: outcome.after, why: outcome.why })
    case 'ours':
      return defer({ after: OWN_FAILURE_DELAY, why: outcome.reason })
    case 'broken':
      return defer({ after: OWN_FAILURE_DELAY, why: failureTexts(outcome.error)[0] })
    case 'disable':
    case 'held':
      // The lane is held. If it was released since, it is due at once.
      return defer({ after: 0, why: outcome.reason })
  }
}

/** `failureTexts` returns a text for the subscriber and one for the log. Store errors name files and hosts, so only the log has them. */
export function failureTexts(error: unknown): readonly [shown: string, whole: string] {
  const whole = error instanceof Error ? error.message : String(error)
  return [`${error instanceof SluiceError ? error.code : 'Something failed'}; the log says more.`, whole]
}
