// `settingsFrom` reads the settings of the app from variables of the environment.
import type { Duration, Millis } from 'sluice'
import type { Env } from '../kit/example.ts'

export interface Settings {
  /** Encrypt payloads, tokens and raw data: 32 bytes as base64; several are separated by commas. */
  readonly encryptionKey: string
  readonly garmin: {
    readonly clientId: string
    readonly clientSecret: string
    readonly addresses: readonly string[]
    /** In a minute: 100 with an evaluation key, 10,000 in production. */
    readonly backfillDays: number
  }
  readonly strava: {
    readonly verifyToken: string
    readonly subscriptionId: string
    readonly clientId: string
    readonly clientSecret: string
    readonly signingSecret: string | undefined
    readonly quarterHour: number
    readonly day: number
    /** The most activities of one person in a quarter of an hour. */
    readonly perAthlete: number
    /** The most requests about one athlete in a minute. */
    readonly requestsPerAthlete: number
    /** The lengths of Strava's two windows. Only a stand-in has others than a quarter of an hour and a day. */
    readonly window: Millis
    readonly dayLength: Millis
  }
  /** The delays before further attempts. */
  readonly retry: readonly Duration[]
  /** The latency above which an alert is raised. */
  readonly latency: Duration
  /** Where dead letters are reported: `https://<key>@<host>/<project>`. */
  readonly sentryDsn: string | undefined
}

export function settingsFrom(env: Env): Settings {
  const needed = (name: string): string => {
    const value = env[name]
    if (value === undefined || value === '')
      throw new Error(`${name} must be set. See the table of variables in README.md.`)
    return value
  }
  const count = (name: string, otherwise: number): number => {
    const value = Number(env[name] ?? otherwise)
    if (Number.isInteger(value) && value > 0) return value
    throw new Error(`${name} must be a whole number above 0; got ${env[name]}.`)
  }
  const optional = (name: string): string | undefined => (env[name] === '' ? undefined : env[name])
  const list = (name: string): readonly string[] => (env[name] ?? '').split(',').filter((one) => one !== '')
  return {
    encryptionKey: needed('SLUICE_ENCRYPTION_KEY'),
    garmin: {
      clientId: needed('GARMIN_CLIENT_ID'),
      clientSecret: needed('GARMIN_CLIENT_SECRET'),
      addresses: list('GARMIN_ADDRESSES'),
      backfillDays: count('GARMIN_BACKFILL_DAYS_PER_MINUTE', 100),
    },
    strava: {
      verifyToken: needed('STRAVA_VERIFY_TOKEN'),
      subscriptionId: needed('STRAVA_SUBSCRIPTION_ID'),
      clientId: needed('STRAVA_CLIENT_ID'),
      clientSecret: needed('STRAVA_CLIENT_SECRET'),
      signingSecret: optional('STRAVA_SIGNING_SECRET'),
      quarterHour: count('STRAVA_PER_15_MINUTES', 100),
      day: count('STRAVA_PER_DAY', 1_000),
      perAthlete: count('STRAVA_PER_ATHLETE', 25),
      requestsPerAthlete: count('STRAVA_REQUESTS_PER_ATHLETE', 100),
      window: count('STRAVA_WINDOW_MS', 900_000),
      dayLength: count('STRAVA_DAY_MS', 86_400_000),
    },
    // The list of the design. Its formula would give 1, 2, 4 and 8 minutes instead.
    retry: (env['RETRY_DELAYS'] ?? '1m,5m,30m,2h').split(',') as readonly Duration[],
    latency: (env['LATENCY_ALERT'] ?? '5m') as Duration,
    sentryDsn: optional('SENTRY_DSN'),
  }
}
