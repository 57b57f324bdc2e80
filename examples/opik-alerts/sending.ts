// Sends notifications to the endpoints of their alerts. It knows nothing of windows or of how a notification came about.
import type { Sluice } from 'sluice'
import { notification } from './domain/notification.ts'

export function sendNotifications(app: Sluice): void {
  // Each notification is a POST of its own, whatever the form of the endpoint. Opik waits 500 ms, then twice as long, up to 30 s.
  app.delivery('send', { on: notification, maxEvents: 1, retry: ['500ms', '1s', '2s'] })
}
