// The four alerts of the design: each is raised, and sent to the service that wakes somebody.
import type { Scenario } from '../../kit/example.ts'
import { millisOf } from '../../kit/millis.ts'
import { connectGarmin, connectStrava, eventually, type World } from './world.ts'

const ATHLETES = ['7021', '7022', '7023', '7024']
const EACH = 28
const MALFORMED = 150
const WITHIN = 90_000

export const alerts: Scenario<World> = async (stage) => {
  const { garmin, strava, notify, settings } = stage.world
  const { app } = stage
  const isRaised = async (name: string): Promise<boolean> =>
    (await app.admin.alerts.list()).some((one) => one.name === name && one.state === 'raised')
  const raised = (name: string): Promise<void> => eventually(stage, `${name} is raised`, () => isRaised(name), WITHIN)

  await connectGarmin(stage, 'yan')
  const items = Array.from({ length: MALFORMED }, (_, n) => ({ userId: 'garmin-yan', summaryId: `malformed-${n}` }))
  await garmin.push(stage.send, 'sleeps', items)

  // The first call of each athlete takes long, and the others of the athlete are ready behind it.
  for (const athlete of ATHLETES) await connectStrava(stage, `athlete-${athlete}`, athlete)
  const stalled = Promise.withResolvers<void>()
  strava.stalled = stalled.promise
  await app.admin.flows.pause('strava-activity', { reason: 'maintenance', by: 'an operator' })
  for (const athlete of ATHLETES)
    for (let n = 0; n < EACH; n++) {
      const id = `${athlete}${n}`
      strava.add(id)
      await strava.tell(stage.send, { id, athlete, ...(n > 0 && { aspect_type: 'delete' }) })
    }
  // What waits for a paused flow does not count for the depth, but it does for the latency.
  await stage.sleep(millisOf(settings.latency))
  stage.check('a paused flow raises nothing', !(await isRaised('queue-depth')))
  await app.admin.flows.resume('strava-activity')
  for (const name of ['dead-letters', 'failure-rate', 'queue-depth']) await raised(name)
  stalled.resolve()
  await stage.idle({ flows: ['strava-activity'], within: WITHIN })
  await raised('latency')

  const names = ['queue-depth', 'latency', 'dead-letters', 'failure-rate']
  const sent = (): readonly string[] =>
    notify.log.flatMap(({ path, json }) => (path === '/alerts' ? [JSON.stringify(json())] : []))
  const isSent = (name: string): boolean => sent().some((body) => body.includes(`"${name}"`))
  await eventually(stage, 'each was sent', () => names.every(isSent), WITHIN)
  for (const name of names) stage.check(`${name} was raised, and sent`, isSent(name))
}
