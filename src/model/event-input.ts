// An event as somebody publishes it: a type, and whatever else is worth saying.
import type { Millis } from '../clock.ts'

export interface EventInput {
  readonly type: string
  /** Kept as JSON. */
  readonly data?: unknown
  /** Or the bytes as they are. */
  readonly body?: Uint8Array | string
  /** 'app' unless said. */
  readonly source?: string
  readonly tenant?: string
  readonly subject?: string
  readonly time?: Date | Millis
  /** Further CloudEvents attributes. */
  readonly attributes?: Readonly<Record<string, unknown>>
  readonly id?: string
  /** The same one again from the same source and tenant is a duplicate; the id unless said. */
  readonly dedupeId?: string
}
