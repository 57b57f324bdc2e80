// The people of a load: they are connected, Garmin pushes their items, and Strava tells of their activities.
import { systemClock, type Millis } from 'sluice'
import type { Send } from '../../kit/hosts.ts'
import type { GarminStandIn } from '../stand-in/garmin.ts'
import type { StravaStandIn } from '../stand-in/strava.ts'
import { PEOPLE, type Push } from './plan.ts'

export interface People {
  readonly garmin: GarminStandIn
  readonly strava: StravaStandIn
  readonly send: Send
}

const ATHLETES = 4
const PUSHES_AT_ONCE = 6

/** The app must take calls of its API without a key. */
export async function connectEverybody({ strava, send }: Omit<People, 'garmin'>): Promise<void> {
  const connect = async (body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    let status = 0
    // A worker that is killed does not answer.
    await eventually(async () => (status = (await send('/connections', init)).status) > 0)
    if (status >= 300) throw new Error(`The app answered ${status} to a connection.`)
  }
  for (let n = 0; n < PEOPLE; n++)
    await connect({ provider: 'garmin', externalId: `garmin-person-${n}`, profileId: `person-${n}` })
  for (let n = 0; n < ATHLETES; n++) {
    const athlete = String(8_000 + n)
    const tokens = strava.connect(athlete)
    await connect({ provider: 'strava', externalId: athlete, profileId: `athlete-${n}`, tokens })
  }
}

/** Some pushes are on their way at a time. A push that is not answered with 200 is sent again. */
export async function pushAll({ garmin, send }: Omit<People, 'strava'>, pushes: readonly Push[]): Promise<void> {
  const queue = [...pushes]
  const one = async (): Promise<void> => {
    for (let push = queue.shift(); push !== undefined; push = queue.shift())
      await garmin.push(send, push.type, push.items)
  }
  await Promise.all(Array.from({ length: PUSHES_AT_ONCE }, one))
}

/** Tells of `activities` new ones, numbered from `from`. */
export async function tellStrava(
  { strava, send }: Omit<People, 'garmin'>,
  { activities, from = 0 }: { readonly activities: number; readonly from?: number },
): Promise<void> {
  for (let n = from; n < from + activities; n++) {
    const id = `${5_000_000 + n}`
    strava.add(id)
    await eventually(async () => (await strava.tell(send, { id, athlete: `${8_000 + (n % ATHLETES)}` })) === 200)
  }
}

/** The condition is looked at in intervals, also when it throws: while the only worker is replaced, each request fails at once. */
export async function eventually(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await sleep(100)
}

export function sleep(ms: Millis): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}
