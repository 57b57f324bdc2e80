// One event to one endpoint, to see whether it gets there: signed and guarded as all others, in no lane, tried once. It counts
// neither for the health of the endpoint nor for its breaker.
import type { Millis } from '../clock.ts'
import { newEventId } from '../model/event.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { Addressed } from './endpoints.ts'
import { kept } from './history.ts'
import { outcomeOf } from './outcome.ts'
import { impatiently, postBatch, type PostingParts } from './posting.ts'

export interface TestResult {
  /** The id of the event that was sent. */
  readonly event: string
  readonly delivered: boolean
  readonly ms: Millis
  /** Of the answer; not there if there was none. */
  readonly status?: number
  /** The first 1,000 characters. */
  readonly answer?: string
  /** Empty: it was delivered. */
  readonly error: string
}

const TYPE = 'endpoint.test'

export async function sendTest(parts: PostingParts, to: Addressed): Promise<TestResult> {
  const now = parts.now()
  const { id: endpoint, tenant } = to.endpoint
  const body = Buffer.from(JSON.stringify({ endpoint, text: 'This is a test: nothing has happened.' }))
  const named = { id: newEventId(now), source: 'sluice', type: TYPE, time: now, tenant, subject: endpoint }
  const event = new FlowEvent({ ...named, attributes: '', body })
  const { posted, ids } = await impatiently(parts, (some) => postBatch(some, to, { type: TYPE, events: [event] }))
  const outcome = outcomeOf(posted, ids, now)
  return {
    event: event.id,
    delivered: outcome.kind === 'delivered',
    ms: Math.round(posted.ms),
    ...(posted.kind === 'answered' && { status: posted.status, answer: kept(posted.body.toString()) }),
    error: 'reason' in outcome ? outcome.reason : '',
  }
}
