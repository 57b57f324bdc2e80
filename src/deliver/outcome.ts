// `decideOutcome` maps the result of a POST to what happens next with the batch. It is pure (D4).
import type { Millis } from '../clock.ts'
import { refusalDelay } from '../limit/retry-after.ts'
import { parseData } from '../model/event.ts'
import { MAX_RESPONSE_BYTES } from './http/exchange.ts'
import type { PostResponse, PostResult } from './http/post.ts'

export type DeliveryOutcome =
  | { readonly kind: 'delivered' }
  /** Every other event of the batch was accepted. */
  | { readonly kind: 'partly'; readonly failed: readonly string[]; readonly reason: string }
  /** Retried on the schedule, or later if the endpoint asks for it. */
  | {
      readonly kind: 'retry'
      readonly after: Millis | undefined
      readonly reason: string
      /** Only for the operator's log. */
      readonly detail?: string
    }
  /** Not retried; the batch becomes a dead letter at once. */
  | { readonly kind: 'dead'; readonly reason: string }
  /** The endpoint wants no more events; its waiting events stay. */
  | { readonly kind: 'disable'; readonly reason: string }
  /** Sluice's own failure. It uses no attempt. */
  | { readonly kind: 'ours'; readonly reason: string }

const GONE = 410

export function decideOutcome(posted: PostResult, events: readonly string[], now: Millis): DeliveryOutcome {
  if (posted.kind === 'answered') return decideByResponse(posted, events, now)
  const { detail } = posted
  const reason = `${posted.why}: ${posted.error}`
  switch (posted.why) {
    case 'guarded':
      return { kind: 'dead', reason }
    case 'stopped':
    case 'unsendable':
      return { kind: 'ours', reason }
    case 'dns':
    case 'connect':
    case 'tls':
    case 'timeout':
    case 'cut-off':
    case 'malformed':
      return { kind: 'retry', after: undefined, reason, ...(detail !== undefined && { detail }) }
  }
}

/** `responseBudget` returns how many response bytes are read: enough to list all events of the batch in any layout. */
export function responseBudget(events: readonly string[]): number {
  return events.reduce((bytes, id) => bytes + Buffer.byteLength(id) + SEPARATOR_BYTES, MAX_RESPONSE_BYTES)
}

const SEPARATOR_BYTES = 24

function decideByResponse(response: PostResponse, events: readonly string[], now: Millis): DeliveryOutcome {
  const { status } = response
  if (status >= 200 && status < 300) return decideAccepted(response, events)
  if (status === GONE) return { kind: 'disable', reason: 'The endpoint returned 410 (gone).' }
  const isElsewhere = status >= 300 && status < 400
  const reason = isElsewhere
    ? `The endpoint returned ${status}. Redirects are not followed; register the address that it redirects to.`
    : `The endpoint returned ${status}.`
  return { kind: 'retry', after: retryDelayOf(response, now), reason }
}

function retryDelayOf({ status, retryAfter, date }: PostResponse, now: Millis): Millis | undefined {
  const said = new Map([
    ['retry-after', retryAfter],
    ['date', date],
  ])
  return refusalDelay({ status, headers: { get: (name) => said.get(name) ?? null } }, now)
}

function decideAccepted(response: PostResponse, events: readonly string[]): DeliveryOutcome {
  const failed = parseFailedEvents(response, events)
  if (failed.length === 0) return { kind: 'delivered' }
  const reason = `The endpoint accepted ${events.length - failed.length} of ${events.length} events.`
  return failed.length === events.length
    ? { kind: 'retry', after: undefined, reason }
    : { kind: 'partly', failed, reason }
}

/** Returns no event unless the response is about this batch: many servers send every caller the same text. */
function parseFailedEvents({ body, isComplete }: PostResponse, events: readonly string[]): readonly string[] {
  const data = isComplete && body.length > 0 ? parseData(body) : undefined
  if (typeof data !== 'object' || data === null) return []
  const taken = parseIds(data, 'accepted')
  const left = parseIds(data, 'failed')
  // A list without any of our ids is about something else.
  const isAboutUs = taken !== undefined && (taken.size === 0 || events.some((id) => taken.has(id)))
  return events.filter((id) => left?.has(id) === true || (isAboutUs && !taken.has(id)))
}

function parseIds(data: object, name: string): ReadonlySet<unknown> | undefined {
  const list: unknown = Object.hasOwn(data, name) ? data[name as keyof typeof data] : undefined
  return Array.isArray(list) ? new Set<unknown>(list) : undefined
}
