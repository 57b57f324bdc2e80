// What happens with Strava: the handshake, changes of activities, two budgets, tokens, and people who leave.
import type { Millis } from 'sluice'
import type { Scenario } from '../../kit/example.ts'
import type { Stage } from '../../kit/stage.ts'
import { connectStrava, eventually, metricsOf, personOf, type World } from './world.ts'

type Play = Scenario<World>

/** With more digits than a number of JavaScript holds. */
const LONG_ID = '90071992547409931'

/** More than the share of one person. */
const BACKLOG = 12

/** How much is left of the quarter of an hour, or of the day, as Strava counts them. */
function leftOf({ clock }: Stage<World>, length: Millis): Millis {
  return length - (clock.now() % length)
}

/** Waits for the next one if less than `time` is left. */
async function haveTime(stage: Stage<World>, length: Millis, time: Millis): Promise<void> {
  const left = leftOf(stage, length)
  if (left < time) await stage.sleep(left)
}

export const lifeOfAnActivity: Play = async (stage) => {
  const { strava } = stage.world
  stage.check('the handshake is answered with JSON', await strava.subscribe(stage.send))
  stage.check('but not with a wrong token', !(await strava.subscribe(stage.send, 'wrong')))
  await connectStrava(stage, 'ivy', '7001')
  strava.add(LONG_ID)
  const tell = (fields: Readonly<Record<string, unknown>> = {}): Promise<number> =>
    strava.tell(stage.send, { id: LONG_ID, athlete: '7001', ...fields })
  stage.check('an event is answered with 200', (await tell()) === 200)
  await stage.idle()
  stage.check('a new activity is a metric', (await metricsOf(stage, 'ivy')).join() === 'activity 3000 seconds')
  strava.add(LONG_ID, { moving_time: 2_400 })
  await tell({ aspect_type: 'update', updates: { title: 'Shorter' } })
  await stage.idle()
  stage.check('an update is fetched again', (await metricsOf(stage, 'ivy')).join() === 'activity 2400 seconds')
  await tell({ aspect_type: 'delete' })
  await stage.idle()
  stage.check('a deleted one is removed', (await metricsOf(stage, 'ivy')).length === 0)
  const calls = strava.calls.filter(({ id }) => id === LONG_ID).length
  stage.check('each change was one call, with all digits of the id', calls === 2)
  const refused = [await tell({ aspect_type: 'explode' }), await tell({ object_type: 'segment' })]
  stage.check(`unknown aspects and objects are refused: ${refused.join()}`, refused.join() === '400,400')
}

export const flood: Play = async (stage) => {
  const { strava, settings } = stage.world
  await connectStrava(stage, 'sam', '7009')
  await connectStrava(stage, 'tia', '7010')
  const statuses: number[] = []
  // Nobody is asked for what is deleted.
  for (let n = 0; n <= settings.strava.requestsPerAthlete; n++)
    statuses.push(await strava.tell(stage.send, { id: `${1_000 + n}`, athlete: '7009', aspect_type: 'delete' }))
  const refused = statuses.filter((status) => status !== 200)
  stage.check(`an athlete who floods the app is refused: ${refused.join()}`, refused.join() === '429')
  const other = await strava.tell(stage.send, { id: '2000', athlete: '7010', aspect_type: 'delete' })
  stage.check(`which keeps no other one out: ${other}`, other === 200)
}

export const deauthorization: Play = async (stage) => {
  const { strava, notify } = stage.world
  const before = notify.log.length
  await connectStrava(stage, 'jan', '7002')
  await connectStrava(stage, 'kim', '7003')
  const athlete = { object_type: 'athlete' }
  const updates = { authorized: 'false' }
  await strava.tell(stage.send, { id: '7002', athlete: '7002', ...athlete, aspect_type: 'update', updates })
  await strava.tell(stage.send, { id: '7003', athlete: '7003', ...athlete, aspect_type: 'delete' })
  await stage.until('both are notified', () => notify.log.length >= before + 2)
  for (const person of ['jan', 'kim']) {
    const [connection] = (await personOf(stage, person)).connections
    stage.check(`${person} is disconnected, without tokens`, connection?.isConnected === false && !connection.hasTokens)
  }
  strava.add('555')
  const calls = strava.calls.length
  await strava.tell(stage.send, { id: '555', athlete: '7002' })
  await stage.idle()
  stage.check('nothing is fetched for them any more', strava.calls.length === calls)
}

export const tokens: Play = async (stage) => {
  const { strava, notify } = stage.world
  await connectStrava(stage, 'lea', '7004', true)
  const before = strava.refreshes
  for (const id of ['601', '602', '603']) {
    strava.add(id)
    await strava.tell(stage.send, { id, athlete: '7004' })
  }
  await stage.idle()
  stage.check(`an expired token is refreshed once: ${strava.refreshes - before}`, strava.refreshes === before + 1)
  stage.check('and all three activities are there', (await metricsOf(stage, 'lea')).length === 3)
  const told = notify.log.length
  strava.revoke('7004')
  strava.add('604')
  await strava.tell(stage.send, { id: '604', athlete: '7004' })
  await stage.until('lea is notified', () => notify.log.length > told)
  const [connection] = (await personOf(stage, 'lea')).connections
  stage.check('tokens that Strava no longer accepts end the connection', connection?.isConnected === false)
}

export const connectedAgain: Play = async (stage) => {
  const { strava } = stage.world
  strava.add('606')
  await strava.tell(stage.send, { id: '606', athlete: '7013' })
  await stage.idle()
  await connectStrava(stage, 'zoe', '7013')
  await stage.until('what was dropped is there', async () => (await metricsOf(stage, 'zoe')).length === 1)
  const calls = strava.calls.length
  // The back end connects zoe once more, e.g. because it got no answer the first time.
  await connectStrava(stage, 'zoe', '7013')
  await stage.sleep(2_000)
  await stage.idle()
  stage.check('who is connected already costs no calls of Strava again', strava.calls.length === calls)
}

export const wrongSecret: Play = async (stage) => {
  const { strava } = stage.world
  await connectStrava(stage, 'vic', '7011', true)
  const { clientSecret } = strava
  strava.clientSecret = 'somebody has reset it'
  strava.add('605')
  await strava.tell(stage.send, { id: '605', athlete: '7011' })
  await stage.until('the refresh has failed', () => stage.emitted('run.retry').some(({ key }) => key.endsWith('/605')))
  const [connection] = (await personOf(stage, 'vic')).connections
  stage.check('a wrong secret of the app disconnects nobody', connection?.isConnected === true && connection.hasTokens)
  strava.clientSecret = clientSecret
  await eventually(stage, 'the activity is there', async () => (await metricsOf(stage, 'vic')).length === 1, 120_000)
  stage.check('and the retry saves the activity once the secret is right', true)
}

export const budgets: Play = async (stage) => {
  const { strava, settings } = stage.world
  const { window } = settings.strava
  await connectStrava(stage, 'max', '7005')
  await connectStrava(stage, 'nia', '7006')
  // The budgets begin anew, and other programs use some of them: the first answer says so.
  await stage.sleep(leftOf(stage, window))
  strava.useElsewhere(4)
  const began = stage.clock.now()
  const exceeded = strava.exceeded
  for (let n = 0; n < BACKLOG; n++) {
    strava.add(`${800 + n}`)
    await strava.tell(stage.send, { id: `${800 + n}`, athlete: '7005' })
  }
  strava.add('900')
  await strava.tell(stage.send, { id: '900', athlete: '7006' })
  await eventually(stage, 'nia has the activity', async () => (await metricsOf(stage, 'nia')).length === 1, window)
  const waited = stage.clock.now() - began
  stage.check(`nia had to wait for ${waited / 1_000} s, not for all of max's`, waited < window / 3)
  const left = BACKLOG - (await metricsOf(stage, 'max')).length
  stage.check(
    `${left} of max's ${BACKLOG} wait for the next quarter of an hour`,
    left >= BACKLOG - settings.strava.perAthlete,
  )
  await stage.sleep(window / 3)
  const { live } = (await stage.app.admin.flows.list()).find(({ flow }) => flow === 'strava-activity') ?? {}
  stage.check(`what waits for its budget holds no worker: ${live} runs are live`, live === 0)
  await eventually(stage, 'all are there', async () => (await metricsOf(stage, 'max')).length === BACKLOG, 10 * window)
  const calls = strava.calls.filter(({ athlete, at }) => athlete === '7005' && at >= began).length
  stage.check(`each was fetched once: ${calls} calls`, calls === BACKLOG)
  stage.check(`Strava has never seen a budget exceeded`, strava.exceeded === exceeded)
}

export const exhausted: Play = async (stage) => {
  const { strava, settings } = stage.world
  const { window, quarterHour } = settings.strava
  await connectStrava(stage, 'opa', '7008')
  await haveTime(stage, window, window / 3)
  // Others have used up the budget, and nothing has told us yet.
  strava.useElsewhere(quarterHour)
  strava.add('950')
  await strava.tell(stage.send, { id: '950', athlete: '7008' })
  await eventually(stage, 'the activity is there', async () => (await metricsOf(stage, 'opa')).length === 1, 5 * window)
  const statuses = strava.calls.filter(({ id }) => id === '950').map(({ status }) => status)
  stage.check(
    `the 429 has paused everything until the budget began anew: ${statuses.join()}`,
    statuses.join() === '429,200',
  )
}

export const dayBudget: Play = async (stage) => {
  const { strava, settings } = stage.world
  const { window, dayLength } = settings.strava
  await connectStrava(stage, 'wes', '7012')
  await haveTime(stage, dayLength, 1.5 * window)
  strava.leaveOfDay(2)
  const [tomorrow, exceeded] = [stage.clock.now() + leftOf(stage, dayLength), strava.exceeded]
  for (let n = 0; n < 4; n++) {
    strava.add(`${960 + n}`)
    await strava.tell(stage.send, { id: `${960 + n}`, athlete: '7012' })
  }
  await eventually(stage, 'two are there', async () => (await metricsOf(stage, 'wes')).length === 2, 2 * window)
  await stage.sleep(1.2 * window)
  stage.check(
    'the usage headers stop the others, also in the next window',
    (await metricsOf(stage, 'wes')).length === 2,
  )
  const { live } = (await stage.app.admin.flows.list()).find(({ flow }) => flow === 'strava-activity') ?? {}
  stage.check(`the wait for the next day holds no worker: ${live} runs are live`, live === 0)
  const all = async (): Promise<boolean> => (await metricsOf(stage, 'wes')).length === 4
  await eventually(stage, 'all are there', all, 2 * dayLength)
  const late = strava.calls.filter(({ athlete, at }) => athlete === '7012' && at >= tomorrow)
  stage.check(`they were fetched on the next day: ${late.length}`, late.length === 2)
  stage.check('Strava has never seen the budget of the day exceeded', strava.exceeded === exceeded)
}
