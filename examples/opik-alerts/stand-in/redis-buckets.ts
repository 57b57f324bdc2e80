// What the design would do with the same events: buckets in Redis that expire. It counts how many are lost while its processor is down.
import type { Millis } from 'sluice'

export interface BucketEvent {
  readonly at: Millis
  /** `webhook_pending:{alertId}:{eventType}` */
  readonly key: string
}

export interface BucketOptions {
  readonly window: Millis
  readonly ttl: Millis
  /** The processor does nothing in this time. */
  readonly down: { readonly from: Millis; readonly to: Millis }
}

/** Each event renews the expiry, which is kinder than the product: there, a bucket expires so long after its first event. */
export function lostEvents(events: readonly BucketEvent[], { window, ttl, down }: BucketOptions): number {
  let lost = 0
  const buckets = new Map<string, { first: Millis; last: Millis; events: number }>()
  for (const { at, key } of events.toSorted((one, other) => one.at - other.at)) {
    const bucket = buckets.get(key)
    if (bucket !== undefined && at < bucket.last + ttl && !isSentBefore(bucket.first + window, at, down)) {
      Object.assign(bucket, { last: at, events: bucket.events + 1 })
      continue
    }
    if (bucket !== undefined) lost += isLost(bucket, window, ttl, down) ? bucket.events : 0
    buckets.set(key, { first: at, last: at, events: 1 })
  }
  for (const bucket of buckets.values()) lost += isLost(bucket, window, ttl, down) ? bucket.events : 0
  return lost
}

type Down = BucketOptions['down']

/** The processor takes a bucket at the end of its window, or when it is up again. */
function sendTime(due: Millis, { from, to }: Down): Millis {
  return due >= from && due < to ? to : due
}

function isSentBefore(due: Millis, at: Millis, down: Down): boolean {
  return sendTime(due, down) <= at
}

function isLost({ first, last }: { first: Millis; last: Millis }, window: Millis, ttl: Millis, down: Down): boolean {
  return sendTime(first + window, down) >= last + ttl
}
