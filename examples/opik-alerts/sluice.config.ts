// Opik alerts: what happens in a workspace becomes one notification per alert, event type and window. README.md lists the variables.
import { alerts as conditions, drop, Sluice } from 'sluice'
import type { Surroundings } from '../kit/example.ts'
import { production } from '../kit/production.ts'
import { AlertTable } from './alert-table.ts'
import { Alerts, COLLECT, laneOf } from './alerts.ts'
import { consolidate, groupEvents, isCut } from './domain/consolidate.ts'
import { windowOf } from './domain/debouncing.ts'
import { occurred, pending } from './domain/events.ts'
import { notification } from './domain/notification.ts'
import { alertRoutes } from './routes.ts'
import { sendNotifications } from './sending.ts'
import { settingsFrom } from './settings.ts'

export function build({ store, env, clock, options, watch }: Surroundings): Sluice {
  const { SLUICE_ENCRYPTION_KEY: encryptionKey } = env
  const { maxEventsPerKey, maxKeysPerWorkspace, lateAfter } = settingsFrom(env)
  const app = new Sluice({
    store,
    ...(encryptionKey !== undefined && { encryptionKey }),
    ...options,
    delivery: { userAgent: 'Opik-Webhook/1.0', deadline: '10s', ...options.delivery },
  })
  const table = new AlertTable({ store, watch })
  alertRoutes(app, new Alerts(app, table, clock))

  // A key and a window cannot read a table, so this flow reads it and publishes the event once for each alert.
  app.flow('match', {
    on: occurred,
    key: (event) => event.tenant,
    // A run publishes each event once for each alert about it, in one commit.
    maxEvents: 250,
    run: async ({ key: workspace, events, publish, count }) => {
      const alerts = (await table.ofWorkspace(workspace)).filter(({ enabled }) => enabled)
      for (const { id: event_id, data } of events) {
        const about = alerts.filter(({ event_types }) => event_types.includes(data.event_type))
        if (about.length === 0) count('events-without-alert')
        for (const { id: alert, debouncing } of about)
          publish(pending({ ...data, alert, event_id, debouncing }, { tenant: workspace, subject: alert }))
      }
    },
  })

  app.flow(COLLECT, {
    on: pending,
    key: ({ data }) => laneOf(data.alert, data.event_type),
    window: ({ data }) => ({ every: windowOf(data.debouncing) }),
    maxEvents: maxEventsPerKey,
    maxLanesPerTenant: maxKeysPerWorkspace,
    run: async ({ id, events, tenant, publish, count }) => {
      const [first] = events
      const alert = first && (await table.find(first.data.alert))
      if (alert?.enabled !== true) {
        count('events-dropped', events.length)
        return drop(alert === undefined ? 'The alert was deleted.' : 'The alert is disabled.')
      }
      const groups = groupEvents(events)
      for (const [n, group] of groups.entries()) {
        const data = group.map((event) => event.data)
        const made = consolidate(alert, data, { seed: `${id}/${n}`, at: clock.now() })
        publish(notification(made, { id: made.id, tenant, subject: alert.id }), { to: alert.endpoint })
      }
      count('events-aggregated', events.length)
      count('notifications', groups.length)
      if (events.length >= maxEventsPerKey) count('windows-full')
      else if (isCut(events, clock.now())) count('windows-cut')
      return undefined
    },
  })

  sendNotifications(app)

  app.alert('late', { when: conditions.oldest({ above: lateAfter, paused: true }) })
  app.alert('not-delivered', { when: conditions.deadLetters({ above: 0 }) })
  return app
}

export default build(production({ store: 'sqlite:opik-alerts.db' }))
