// `EventInput` is an event as a user publishes it. Only `type` is required.
import type { Millis } from '../clock.ts'

export interface EventInput {
  readonly type: string
  /** The data, which is stored as JSON. */
  readonly data?: unknown
  /** The bytes, instead of `data`. */
  readonly body?: Uint8Array | string
  /** Default: `'app'`. */
  readonly source?: string
  readonly tenant?: string
  readonly subject?: string
  readonly time?: Date | Millis
  /** Further CloudEvents attributes. */
  readonly attributes?: Readonly<Record<string, unknown>>
  readonly id?: string
  /** A second event with the same source, tenant and dedupe id is a duplicate. Default: the event's id. */
  readonly dedupeId?: string
}

/** `PublishResult` is the result for one event. Its ids are those of the events, even while a delayed event waits. */
export interface PublishResult {
  readonly id: string
  /** `in-transaction`: the event is stored if and only if the transaction commits. */
  readonly kind: 'stored' | 'repeated' | 'duplicate' | 'conflict' | 'refused' | 'in-transaction'
  /** The stored event with the same identity. */
  readonly of: string | undefined
}
