// A notification: an event that the application sends. Its data is the body, as Opik's `general` alerts have it.
import { defineEvent } from 'sluice'
import type { EventType } from './event-types.ts'

export interface NotificationBody {
  readonly id: string
  readonly event_type: EventType
  readonly alert_id: string
  readonly project_id?: string
  readonly alert_name: string
  readonly workspace_id: string
  readonly workspace_name: string
  readonly payload: {
    readonly alertId: string
    readonly alertName: string
    readonly eventType: EventType
    readonly eventIds: readonly string[]
    readonly metadata: readonly unknown[]
    readonly userNames: readonly string[]
    readonly eventCount: number
    readonly aggregationType: 'consolidated'
    readonly message: string
  }
  readonly created_at: string
  readonly max_retries: number
}

/** What Slack and PagerDuty show of it: Sluice's forms look for these members. */
interface Card {
  readonly title: string
  readonly text: string
  readonly severity: 'error' | 'info'
}

export type NotificationData = NotificationBody & Partial<Card>

export const notification = defineEvent<NotificationData>('opik/alert.notification')

/** What Opik tells the receiver. sending.ts keeps to it. */
export const MAX_RETRIES = 3
