// What `purge` removes (L15).
import type { LaneId } from '../../model/identity.ts'
import type { Reply } from './work.ts'

/** What a purge is for. A subject may be that of one tenant only. */
export type PurgeTarget =
  | { readonly kind: 'lanes'; readonly ids: readonly LaneId[] }
  | { readonly kind: 'tenant'; readonly tenant: string }
  | { readonly kind: 'subject'; readonly subject: string; readonly tenant: string | undefined }
  | { readonly kind: 'event'; readonly id: string }

export interface PurgeCall {
  readonly what:
    | PurgeTarget
    /**
     * The records of the lane's runs with events in the scope, and the texts that may quote these events. Other purges look only at
     * the newest runs of a lane, so this one goes first, while the events still have their subject.
     */
    | { readonly kind: 'runs'; readonly lane: LaneId; readonly of: PurgeScope; readonly before: number }
  /** The most events, or runs, in this call. Repeat the call while `more` is true; for runs, with `before` of the reply. */
  readonly n: number
}

/** All given fields must match. */
export interface PurgeScope {
  readonly tenant?: string | undefined
  readonly subject?: string | undefined
  readonly id?: string | undefined
}

export interface PurgeReply extends Reply {
  readonly events: number
  readonly deadLetters: number
  readonly runs: number
  readonly more: boolean
  /** The `before` of the next call for runs. */
  readonly before?: number
}
