// The two sources. Each event belongs to the provider's user, who is its tenant.
import { garmin, strava } from 'sluice/sources'
import type { Settings } from './settings.ts'

type Source = ReturnType<typeof garmin>

/** The last parts of the addresses that Garmin pushes to. */
export const GARMIN_PATHS: readonly string[] = [
  'sleeps',
  'stressDetails',
  'userMetrics',
  'dailies',
  'activities',
  'deregistration',
  'user-permission',
]

const STRAVA_EVENTS: ReadonlySet<string> = new Set([
  'activity.create',
  'activity.update',
  'activity.delete',
  'athlete.update',
  'athlete.deauthorized',
])

export function garminSource({ clientId, addresses }: Settings['garmin']): Source {
  return perPerson(garmin({ clientId, ...(addresses.length > 0 && { addresses }) }), () => true)
}

/** Refuses any other aspect or object than those of the design. */
export function stravaSource({ verifyToken, subscriptionId, signingSecret: secret }: Settings['strava']): Source {
  const source = strava({ verifyToken, subscriptionId, ...(secret !== undefined && { secret }) })
  return perPerson(source, (type) => STRAVA_EVENTS.has(type))
}

function perPerson(source: Source, isKnown: (type: string) => boolean): Source {
  return {
    ...source,
    events: (request) => {
      const events = source.events(request)
      if ('code' in events) return events
      const unknown = events.find(({ type }) => !isKnown(type))
      if (unknown !== undefined)
        return {
          code: 'BODY_NOT_UNDERSTOOD',
          what: `${unknown.type.slice(0, 100)} is not an event that this app knows.`,
          fix: 'Make sure that only the provider calls this URL.',
        }
      return events.map((event) => ({ ...event, tenant: event.subject }))
    },
  }
}
