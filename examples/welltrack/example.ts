// WellTrack as the kit plays, serves and tests it, on stand-ins for Garmin and Strava.
import type { Example } from '../kit/example.ts'
import { loadPage } from './load/page.ts'
import { alerts } from './scenarios/alerts.ts'
import { backfill, backfillTokens } from './scenarios/backfill.ts'
import { purge, restart, retries } from './scenarios/failures.ts'
import * as garminPlays from './scenarios/garmin.ts'
import * as stravaPlays from './scenarios/strava.ts'
import { SHORT_TIMES, type World } from './scenarios/world.ts'
import { settingsFrom } from './settings.ts'
import { GarminStandIn } from './stand-in/garmin.ts'
import { StravaStandIn } from './stand-in/strava.ts'
import { build } from './welltrack.ts'

export const welltrack: Example<World> = {
  main: import.meta.resolve('./main.ts'),
  build,
  world: ({ clock, env, serve, standIn }) => {
    const settings = settingsFrom(env)
    const garmin = new GarminStandIn(clock, Number(env['GARMIN_LATE_MS']))
    const strava = new StravaStandIn(clock, settings.strava)
    serve('garmin', garmin.handle)
    serve('garmin-oauth', garmin.handle)
    serve('strava', strava.handle)
    const notify = standIn('notify', () => new Response(''))
    const sentry = standIn('sentry', () => Response.json({ id: 'taken' }))
    return { garmin, strava, notify, sentry, settings, key: undefined }
  },
  env: SHORT_TIMES,
  workers: 2,
  page: loadPage,
  options: {
    admin: { open: 'loopback' },
    lease: '6s',
    heartbeat: '2s',
    // Everything comes from this machine.
    addressRate: { rate: 1_000_000, per: '1m' },
  },
  scenarios: {
    'Every mapping of the design': garminPlays.everyMapping,
    'Duplicates change nothing, and fuller data replaces': garminPlays.duplicatesAndReplacement,
    'A malformed item among many holds up no other one': garminPlays.malformedAmongMany,
    'A malformed version among good ones': garminPlays.malformedVersion,
    'What comes for an unknown person is replayed when the person connects': garminPlays.unknownPerson,
    'A person leaves Garmin and comes back': garminPlays.leaveAndReturn,
    'A person withdraws permissions': garminPlays.permissions,
    'A backfill of 90 days can be continued': backfill,
    'A backfill with expired and with revoked tokens': backfillTokens,
    'The life of an activity at Strava': stravaPlays.lifeOfAnActivity,
    'An athlete who floods the app': stravaPlays.flood,
    'A person leaves Strava, in both forms': stravaPlays.deauthorization,
    'Tokens are refreshed once': stravaPlays.tokens,
    'A person who is connected connects again': stravaPlays.connectedAgain,
    'A wrong secret of the app disconnects nobody': stravaPlays.wrongSecret,
    'Retries, a dead letter, and a retry by hand': retries,
    'Both budgets of Strava hold, and nobody is held up': stravaPlays.budgets,
    'A budget that others have used up': stravaPlays.exhausted,
    'The budget of a day is used up': stravaPlays.dayBudget,
    'A restart loses nothing': restart,
    'Everything of one person is removed': purge,
    'The four alerts': alerts,
  },
}
