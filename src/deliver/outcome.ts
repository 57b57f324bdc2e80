// What becomes of a batch after a POST: pure, from what the other side did to what happens next (D4).
import type { Millis } from '../clock.ts'
import { refusedFor } from '../limit/retry-after.ts'
import { dataOf } from '../model/event.ts'
import { ANSWER_MAX, type Answered, type Posted } from './post.ts'

export type DeliveryOutcome =
  | { readonly kind: 'delivered' }
  /** All others were accepted. */
  | { readonly kind: 'partly'; readonly failed: readonly string[]; readonly reason: string }
  /** On the schedule, or later if the other side asked for that. */
  | { readonly kind: 'retry'; readonly after: Millis | undefined; readonly reason: string }
  /** Not tried again: a dead letter at once. */
  | { readonly kind: 'dead'; readonly reason: string }
  /** The endpoint wants nothing any more; what waits for it waits on. */
  | { readonly kind: 'disable'; readonly reason: string }
  /** It was us, and costs the subscriber nothing: no try is used. */
  | { readonly kind: 'ours'; readonly reason: string }

const GONE = 410

export function outcomeOf(posted: Posted, events: readonly string[], now: Millis): DeliveryOutcome {
  if (posted.kind === 'answered') return ofAnswer(posted, events, now)
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
      return { kind: 'retry', after: undefined, reason }
  }
}

/** Bytes of an answer that are worth reading: a list of all events of the batch fits into it, however it is laid out. */
export function answerRoom(events: readonly string[]): number {
  return events.reduce((bytes, id) => bytes + Buffer.byteLength(id) + BETWEEN_IDS, ANSWER_MAX)
}

const BETWEEN_IDS = 24

function ofAnswer(answer: Answered, events: readonly string[], now: Millis): DeliveryOutcome {
  const { status } = answer
  if (status >= 200 && status < 300) return accepted(answer, events)
  if (status === GONE) return { kind: 'disable', reason: 'It answered 410: it is gone.' }
  const isElsewhere = status >= 300 && status < 400
  const reason = isElsewhere
    ? `It answered ${status}; redirects are not followed, give the address it leads to.`
    : `It answered ${status}.`
  return { kind: 'retry', after: askedFor(answer, now), reason }
}

function askedFor({ status, retryAfter, date }: Answered, now: Millis): Millis | undefined {
  const said = new Map([
    ['retry-after', retryAfter],
    ['date', date],
  ])
  return refusedFor({ status, headers: { get: (name) => said.get(name) ?? null } }, now)
}

function accepted(answer: Answered, events: readonly string[]): DeliveryOutcome {
  const failed = failedIn(answer, events)
  if (failed.length === 0) return { kind: 'delivered' }
  const reason = `It accepted ${events.length - failed.length} of ${events.length} events.`
  return failed.length === events.length
    ? { kind: 'retry', after: undefined, reason }
    : { kind: 'partly', failed, reason }
}

/** None, unless the answer is about the events of this batch: many a server has a word for every caller. */
function failedIn({ body, isWhole }: Answered, events: readonly string[]): readonly string[] {
  const data = isWhole && body.length > 0 ? dataOf(body) : undefined
  if (typeof data !== 'object' || data === null) return []
  const taken = idsIn(data, 'accepted')
  const left = idsIn(data, 'failed')
  // A list of names that are not ours is of something else.
  const isAboutUs = taken !== undefined && (taken.size === 0 || events.some((id) => taken.has(id)))
  return events.filter((id) => left?.has(id) === true || (isAboutUs && !taken.has(id)))
}

function idsIn(data: object, name: string): ReadonlySet<unknown> | undefined {
  const list: unknown = Object.hasOwn(data, name) ? data[name as keyof typeof data] : undefined
  return Array.isArray(list) ? new Set<unknown>(list) : undefined
}
