// What the application reports, and what waits for an alert.
import { defineEvent } from 'sluice'
import { z } from 'zod'
import type { Debouncing } from './debouncing.ts'
import { EVENT_TYPES } from './event-types.ts'

const schema = z.object({
  event_type: z.enum(EVENT_TYPES),
  project_id: z.string().optional(),
  user_name: z.string().optional(),
  /** What happened, e.g. the metric and its threshold. It is passed on as it is. */
  metadata: z.unknown().optional(),
})

/** Something happened in a workspace, which is the tenant of the event. */
export const occurred = defineEvent('opik/alert.event', schema)

export interface Pending extends z.infer<typeof schema> {
  readonly alert: string
  /** The id of the event in the application. */
  readonly event_id: string
  /** As the alert was set when the event came. */
  readonly debouncing: Debouncing
}

/** An event that an enabled alert is about. It waits for the end of its window. */
export const pending = defineEvent<Pending>('opik/alert.pending')
