// What happens with Strava: the handshake, changes of activities, two budgets, tokens, and people who leave.
import type { Scenario } from '../../kit/example.ts'
import { connectStrava, eventually, metricsOf, personOf, type World } from './world.ts'

type Play = Scenario<World>

/** With more digits than a number of JavaScript holds. */
const LONG_ID = '90071992547409931'

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

export const budgets: Play = async (stage) => {
  const { strava, settings } = stage.world
  const { window } = settings.strava
  await connectStrava(stage, 'max', '7005')
  await connectStrava(stage, 'nia', '7006')
  // The budgets begin anew, and other programs use some of them: the first answer says so.
  await stage.sleep(window)
  strava.useElsewhere(4)
  const began = stage.clock.now()
  const exceeded = strava.exceeded
  for (let n = 0; n < 20; n++) {
    strava.add(`${800 + n}`)
    await strava.tell(stage.send, { id: `${800 + n}`, athlete: '7005' })
  }
  strava.add('900')
  await strava.tell(stage.send, { id: '900', athlete: '7006' })
  await eventually(stage, 'nia has the activity', async () => (await metricsOf(stage, 'nia')).length === 1, window)
  const waited = stage.clock.now() - began
  stage.check(`nia had to wait for ${waited / 1_000} s, not for all of max's`, waited < window / 3)
  const left = 20 - (await metricsOf(stage, 'max')).length
  stage.check(`${left} of max's 20 wait for the next quarter of an hour`, left >= 12)
  await stage.sleep(window / 3)
  const { live } = (await stage.app.admin.flows.list()).find(({ flow }) => flow === 'strava-activity') ?? {}
  stage.check(`what waits for its budget holds no worker: ${live} runs are live`, live === 0)
  await eventually(stage, 'all are there', async () => (await metricsOf(stage, 'max')).length === 20, 10 * window)
  const calls = strava.calls.filter(({ athlete, at }) => athlete === '7005' && at >= began).length
  stage.check(`each was fetched once: ${calls} calls`, calls === 20)
  stage.check(`Strava has never seen a budget exceeded`, strava.exceeded === exceeded)
}

export const exhausted: Play = async (stage) => {
  const { strava, settings } = stage.world
  const { window, quarterHour } = settings.strava
  await connectStrava(stage, 'opa', '7008')
  await stage.sleep(window)
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
