// `sendTestEvent` posts one test event to one endpoint, signed and guarded like any other. It uses no lane and no
// retry, and counts neither for the health nor for the breaker.
import type { Millis } from '../clock.ts'
import { newEventId } from '../model/event.ts'
import { toBodyBytes } from '../model/new-event.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { EndpointTarget } from './endpoint.ts'
import { cleanText } from './health/history.ts'
import { decideOutcome } from './outcome.ts'
import { createNextMessage, postMessage, withinDeadline, type SendDependencies } from './send-batch.ts'

export interface TestResult {
  /** The id of the test event. */
  readonly event: string
  readonly delivered: boolean
  readonly ms: Millis
  /** The HTTP status; missing if there was no response. */
  readonly status?: number
  /** The first 1,000 characters of the response body. */
  readonly answer?: string
  /** Empty if the event was delivered. */
  readonly error: string
}

const TYPE = 'endpoint.test'
const SKIPPED = 'The transformation of the endpoint skips the test event.'

/** `data` is the data of the test event, e.g. a sample of what the endpoint will get. */
export async function sendTestEvent(deps: SendDependencies, to: EndpointTarget, data?: object): Promise<TestResult> {
  const now = deps.now()
  const { id: endpoint, tenant } = to.endpoint
  const body = toBodyBytes({ type: TYPE, data: data ?? { endpoint, text: 'This is a test: nothing has happened.' } })
  const named = { id: newEventId(now), source: 'sluice', type: TYPE, time: now, tenant, subject: endpoint }
  const event = new FlowEvent({ ...named, attributes: '', body })
  const message = await createNextMessage(deps, to, { type: TYPE, events: [event] })
  if ('isSkipped' in message) return undelivered(event, SKIPPED)
  if ('error' in message) return undelivered(event, message.error.message)
  const posted = await withinDeadline(deps, (some) => postMessage(some, to, message))
  const outcome = decideOutcome(posted, [event.id], now)
  return {
    event: event.id,
    delivered: outcome.kind === 'delivered',
    ms: Math.round(posted.ms),
    ...(posted.kind === 'answered' && { status: posted.status, answer: cleanText(posted.body.toString()) }),
    error: 'reason' in outcome ? outcome.reason : '',
  }
}

function undelivered({ id }: FlowEvent, error: string): TestResult {
  return { event: id, delivered: false, ms: 0, error }
}
