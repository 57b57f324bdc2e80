// What happens when a person connects or leaves: the events that were dropped are replayed, and the person is notified.
import { alerts, defineEvent } from 'sluice'
import { sentryReport, type DeadRun } from '../domain/sentry.ts'
import { retryOf, type Parts } from '../parts.ts'
import { connectionLost, connectionMade } from './connection-events.ts'

const runDead = defineEvent<DeadRun>('sluice/run.dead')

/** The flows that drop the events of unknown people. */
const DROPPING = {
  garmin: ['garmin-metrics', 'garmin-permissions'],
  strava: ['strava-activity', 'strava-athlete'],
} as const

export function peopleFlows(parts: Parts): void {
  const { app, url, settings } = parts

  app.flow('replay-dropped', {
    on: connectionMade,
    key: (event) => event.tenant,
    retry: retryOf(parts),
    run: async ({ events }) => {
      for (const { data, arrived = 0 } of events) {
        const { id, provider, externalId, since } = data
        // What arrives later finds the person.
        const filter = {
          source: provider,
          tenant: externalId,
          to: arrived + 1,
          ...(since !== undefined && { from: since }),
        }
        await app.admin.replays.start(filter, { id: `connected-${id}`, into: DROPPING[provider] })
      }
    },
  })

  const service = url('notify')
  const limit = app.limit('notifications', { rate: 10, per: '1s' })
  const send = async (path: string, id: string, body: object, signal: AbortSignal): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': id }
    const init = { method: 'POST', headers, body: JSON.stringify(body), signal }
    const response = await limit.fetch(service + path, init)
    await response.body?.cancel()
    if (!response.ok) throw new Error(`The notification service answered ${response.status}.`)
  }

  if (service !== '')
    app.flow('notify-person', {
      on: connectionLost,
      key: (event) => event.tenant,
      retry: retryOf(parts),
      run: async ({ id, events, signal }) => {
        for (const event of events) {
          const { profileId, provider, reason } = event.data
          const body = { profileId, provider, kind: 'disconnected', reason }
          await send('/notifications', `${id}/${event.id}`, body, signal)
        }
      },
    })

  const { sentryDsn } = settings
  const sentry = app.limit('sentry', { rate: 10, per: '1s' })
  // One durable report per dead letter: its event is stored in the commit that makes the run dead.
  if (sentryDsn !== undefined)
    app.flow('report-dead-letter', {
      on: runDead,
      key: (event) => event.id,
      retry: retryOf(parts),
      run: async ({ events, signal }) => {
        for (const { id, data } of events) {
          const { path, headers, body } = sentryReport(data, sentryDsn, id)
          const response = await sentry.fetch(new URL(path, url('sentry') || new URL(sentryDsn).origin), {
            method: 'POST',
            headers,
            body,
            signal,
          })
          await response.body?.cancel()
          if (!response.ok) throw new Error(`Sentry answered ${response.status}.`)
        }
      },
    })

  // The four alerts of the design.
  const conditions = {
    'dead-letters': alerts.deadLetters({ above: 10 }),
    latency: alerts.latency({ above: settings.latency }),
    'failure-rate': alerts.failureRate({ above: 0.1 }),
    'queue-depth': alerts.depth({ above: 100 }),
  }
  for (const [name, when] of Object.entries(conditions))
    app.alert(name, {
      when,
      ...(service !== '' && {
        notify: ({ id, events, signal }) => send('/alerts', id, { kind: 'alert', alert: events[0]?.data }, signal),
      }),
    })
}
