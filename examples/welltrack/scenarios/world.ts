// The world around WellTrack: the stand-ins, and the calls of the app's own API.
import type { Millis } from 'sluice'
import type { Env } from '../../kit/example.ts'
import type { Stage } from '../../kit/stage.ts'
import type { StandIn } from '../../kit/stand-in.ts'
import type { Settings } from '../settings.ts'
import * as atGarmin from '../stand-in/garmin.ts'
import * as atStrava from '../stand-in/strava.ts'

export interface World {
  readonly garmin: atGarmin.GarminStandIn
  readonly strava: atStrava.StravaStandIn
  /** The app's own service for notifications and alerts. */
  readonly notify: StandIn
  readonly sentry: StandIn
  readonly settings: Settings
  key: string | undefined
}

/** The credentials at the stand-ins. */
const CREDENTIALS = {
  SLUICE_ENCRYPTION_KEY: 'YSBzdGFuZC1pbiBrZXkgd2l0aCAzMiBieXRlcyBvayE=',
  GARMIN_CLIENT_ID: atGarmin.CLIENT_ID,
  GARMIN_CLIENT_SECRET: atGarmin.CLIENT_SECRET,
  STRAVA_VERIFY_TOKEN: atStrava.VERIFY_TOKEN,
  STRAVA_SUBSCRIPTION_ID: String(atStrava.SUBSCRIPTION_ID),
  STRAVA_CLIENT_ID: '4711',
  STRAVA_CLIENT_SECRET: atStrava.CLIENT_SECRET,
  SENTRY_DSN: 'https://public-key@sentry.example/42',
}

/** The times of the design, for virtual time. The budgets are small, so that a scenario uses them up. */
export const TRUE_TIMES: Env = {
  ...CREDENTIALS,
  RETRY_DELAYS: '1m,5m,30m,2h',
  STRAVA_WINDOW_MS: '900000',
  STRAVA_PER_15_MINUTES: '20',
  STRAVA_PER_DAY: '1000',
  STRAVA_PER_ATHLETE: '8',
  STRAVA_REQUESTS_PER_ATHLETE: '30',
  GARMIN_LATE_MS: '30000',
}

/** Short ones, to look on. */
export const SHORT_TIMES: Env = {
  ...TRUE_TIMES,
  RETRY_DELAYS: '1s,1s,2s,3s',
  // Longer than a call waits in its run for a slot.
  STRAVA_WINDOW_MS: '15000',
  STRAVA_DAY_MS: '30000',
  LATENCY_ALERT: '3s',
  GARMIN_LATE_MS: '1000',
  GARMIN_BACKFILL_DAYS_PER_MINUTE: '10000',
}

/** Calls the app's own API with a key. */
export async function call(
  stage: Stage<World>,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly json: Readonly<Record<string, unknown>> }> {
  const { world } = stage
  // A stage that is opened again on the same store needs a key of its own.
  const name = `the back end of ${stage.clock.now()}`
  world.key ??= (await stage.app.admin.keys.create({ name, role: 'operate' })).secret
  const headers = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' }
  const response = await stage.send(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as Readonly<Record<string, unknown>> }
}

export async function connectGarmin(
  stage: Stage<World>,
  person: string,
  { permissions, expired = false }: { readonly permissions?: readonly string[]; readonly expired?: boolean } = {},
): Promise<void> {
  const tokens = stage.world.garmin.connect(`garmin-${person}`, { expired })
  const body = { provider: 'garmin', externalId: `garmin-${person}`, profileId: person, tokens, permissions }
  const { status } = await call(stage, 'POST', '/connections', body)
  if (status >= 300) throw new Error(`The app answered ${status} to a connection.`)
  // What arrives in the same millisecond would be replayed with what was dropped.
  await stage.sleep(10)
}

export async function connectStrava(
  stage: Stage<World>,
  person: string,
  athlete: string,
  expired = false,
): Promise<void> {
  const tokens = stage.world.strava.connect(athlete, { expired })
  const body = { provider: 'strava', externalId: athlete, profileId: person, tokens }
  const { status } = await call(stage, 'POST', '/connections', body)
  if (status >= 300) throw new Error(`The app answered ${status} to a connection.`)
  // What arrives in the same millisecond would be replayed with what was dropped.
  await stage.sleep(10)
}

interface KeptMetric {
  readonly type: string
  readonly value: number
  readonly unit: string
  readonly start: string
  readonly end: string
  readonly text: Readonly<Record<string, unknown>>
  readonly missing: readonly string[]
}

export interface KeptPerson {
  readonly connections: readonly {
    readonly provider: string
    readonly isConnected: boolean
    readonly hasTokens: boolean
    readonly metadata: Readonly<Record<string, unknown>>
  }[]
  readonly metrics: readonly KeptMetric[]
}

/** What the app keeps of a person. */
export async function personOf(stage: Stage<World>, person: string): Promise<KeptPerson> {
  return (await call(stage, 'GET', `/people/${person}`)).json as unknown as KeptPerson
}

/** `sleep 26400 seconds`, in order. */
export async function metricsOf(stage: Stage<World>, person: string): Promise<readonly string[]> {
  return (await personOf(stage, person)).metrics.map(({ type, value, unit }) => `${type} ${value} ${unit}`)
}

/** `stage.until` for hours of virtual time: it looks less often. */
export async function eventually(
  stage: Stage<World>,
  what: string,
  holds: () => boolean | Promise<boolean>,
  within: Millis,
): Promise<void> {
  const step = Math.max(100, within / 200)
  for (const end = stage.clock.monotonic() + within; !(await holds()); await stage.sleep(step))
    if (stage.clock.monotonic() > end) throw new Error(`After ${within / 1_000} s still not: ${what}.`)
}
