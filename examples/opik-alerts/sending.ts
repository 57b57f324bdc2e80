// Sends notifications to the endpoints of their alerts. It knows nothing of windows or of how a notification came about.
import type { Sluice } from 'sluice'
import { MAX_RETRIES, notification } from './domain/notification.ts'

/** Opik waits half a second, then doubles it up to 30 s. */
const DELAYS = Array.from({ length: MAX_RETRIES }, (_, n) => Math.min(500 * 2 ** n, 30_000))

export function sendNotifications(app: Sluice): void {
  // Each notification is a POST of its own, whatever the form of the endpoint.
  app.delivery('send', { on: notification, maxEvents: 1, retry: DELAYS })
}
