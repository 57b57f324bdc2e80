// WellTrack: turns what Garmin and Strava send into health metrics. Nothing is processed before the response, and nothing is lost.
import { Sluice } from 'sluice'
import { openDatabase } from '../kit/database.ts'
import type { Surroundings } from '../kit/example.ts'
import { HealthRecords } from './data/records.ts'
import { DATABASE } from './data/schema.ts'
import { Vault } from './data/vault.ts'
import { backfillFlow } from './flows/backfill.ts'
import { garminFlows } from './flows/garmin.ts'
import { peopleFlows } from './flows/people.ts'
import { stravaFlows } from './flows/strava.ts'
import { routes } from './routes.ts'
import { settingsFrom } from './settings.ts'
import { GARMIN_PATHS, garminSource, stravaSource } from './sources.ts'

export function build({ store, env, clock, options, url, watch }: Surroundings): Sluice {
  const settings = settingsFrom(env)
  const { encryptionKey } = settings
  const app = new Sluice({
    store,
    encryptionKey,
    // The design: 1,000 requests a minute from an address; events for 90 days, dead letters for a year.
    addressRate: { rate: 1_000, per: '1m' },
    keep: { events: '90d', deadLetters: '365d' },
    ...options,
  })
  const records = new HealthRecords(watch(openDatabase(store, DATABASE)), new Vault(encryptionKey))
  const parts = { app, settings, records, clock, url }

  app.source('garmin', garminSource(settings.garmin), {
    path: '/webhooks/garmin/*',
    suffixes: GARMIN_PATHS,
    encrypt: true,
  })
  app.source('strava', stravaSource(settings.strava), {
    path: '/webhooks/strava',
    encrypt: true,
    subjectRate: { rate: settings.strava.requestsPerAthlete, per: '1m' },
  })
  garminFlows(parts)
  stravaFlows(parts)
  peopleFlows(parts)
  backfillFlow(parts)
  routes(parts)
  return app
}
