// The flows of Strava: an event only says that an activity has changed, so each run fetches its current state.
import { defineEvent, drop, PermanentError, snooze, type Ending, type Run } from 'sluice'
import { MalformedError } from '../domain/metric.ts'
import { activityId, mapStrava } from '../domain/strava.ts'
import { retryOf, type Parts } from '../parts.ts'
import { StravaApi } from '../strava-api.ts'
import { disconnect, lastArrival } from './connection-events.ts'

const athleteUpdated = defineEvent<{ readonly updates?: unknown }>('strava/athlete.update')

export function stravaFlows(parts: Parts): void {
  const { app, records, clock, url, settings } = parts
  const api = new StravaApi({ app, records, clock, url: url('strava'), settings: settings.strava })

  app.flow('strava-activity', {
    on: 'strava/activity.*',
    key: (event) => `${event.tenant}/activity/${activityId(event.text)}`,
    // Only the last event counts: what is fetched is the state after all of them.
    take: 'last',
    // People take turns, and a person has one call at a time, however long the backlog.
    share: 'tenant',
    concurrency: 1,
    retry: retryOf(parts),
    keep: '90d',
    run: (run) => saveActivity(parts, api, run),
  })

  app.flow('strava-deauthorization', {
    on: 'strava/athlete.deauthorized',
    key: (event) => event.tenant,
    retry: retryOf(parts),
    run: async (run) => {
      const connection = await records.find('strava', run.tenant)
      if (connection === undefined) return drop('unknown person')
      const reason = 'The person revoked the permission at Strava.'
      await disconnect(parts, run, connection, { at: lastArrival(run), reason })
      return undefined
    },
  })

  app.flow('strava-athlete', {
    on: athleteUpdated,
    key: (event) => event.tenant,
    take: 'last',
    retry: retryOf(parts),
    run: async ({ events, tenant }) => {
      const connection = await records.find('strava', tenant)
      if (connection === undefined) return drop('unknown person')
      await records.setMetadata(connection, { ...connection.metadata, updates: events[0]?.data.updates })
      return undefined
    },
  })
}

async function saveActivity(parts: Parts, api: StravaApi, run: Run): Promise<Ending | undefined> {
  const { records, clock } = parts
  const [event] = run.events
  const id = activityId(event?.text ?? '')
  if (event === undefined || id === '') throw new PermanentError('The event has no object_id.')
  const connection = await records.find('strava', run.tenant)
  if (connection === undefined) return drop('unknown person')
  if (event.type === 'activity.delete') {
    await records.remove(connection, run.key)
    return undefined
  }
  if (!connection.isConnected) return drop('the person is not connected')
  const fetched = await api.activity(connection, id, run.signal)
  switch (fetched.kind) {
    case 'gone':
      await records.remove(connection, run.key)
      return undefined
    case 'exhausted':
      // The limits are paused now: the next attempt waits for their slots, and holds no worker meanwhile.
      return snooze({ after: '1s' })
    case 'revoked':
      await disconnect(parts, run, connection, { at: clock.now(), reason: 'Strava no longer accepts the tokens.' })
      return drop('the person has revoked the permission')
    case 'activity': {
      const mapped = mapActivity(fetched.text)
      if (mapped.missing.length > 0) {
        run.count('missing', mapped.missing.length)
        run.log.info('took what is there', { event: event.id, missing: mapped.missing })
      }
      const { arrived = 0, type } = event
      const version = { connection, item: run.key, type, version: arrived, event: event.id, raw: fetched.text }
      await records.save(version, mapped)
      run.count('metrics', mapped.metrics.length)
      return undefined
    }
  }
}

function mapActivity(text: string): ReturnType<typeof mapStrava> {
  try {
    return mapStrava(JSON.parse(text))
  } catch (error) {
    if (error instanceof MalformedError) throw new PermanentError(error.message)
    throw error
  }
}
