// Builds the response to a request whose events are stored.
import type { PublishResult } from '../model/event.ts'
import type { ReceivedRequest, SourceResponse } from './source.ts'

/** `RESULTS_HEADER` in a request asks for the ids of its events: the format of many providers has no place for them. */
export const RESULTS_HEADER = 'sluice-results'

/** A client accepts 16 KB of headers. */
const MAX_HEADER_EVENTS = 20

/** `ReceivedEvent` is how the response describes an event; `of` is the id of the first event, for a duplicate. */
export interface ReceivedEvent {
  readonly id: string
  readonly kind: PublishResult['kind']
  readonly of?: string
}

export function toAcceptedResponse(
  answer: SourceResponse | undefined,
  { headers }: Pick<ReceivedRequest, 'headers'>,
  published: readonly PublishResult[],
): SourceResponse {
  if (answer === undefined)
    return {
      status: 202,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ events: published.map(toReceivedEvent) }),
    }
  if (headers[RESULTS_HEADER] === undefined) return answer
  // Encoded, because the id of an event may have characters that a header may not.
  const results = encodeURIComponent(JSON.stringify(published.slice(0, MAX_HEADER_EVENTS).map(toReceivedEvent)))
  return { ...answer, headers: { ...answer.headers, [RESULTS_HEADER]: results } }
}

function toReceivedEvent({ id, kind, of }: PublishResult): ReceivedEvent {
  return of === undefined ? { id, kind } : { id, kind, of }
}
