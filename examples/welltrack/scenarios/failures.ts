// What happens when something fails: retries, dead letters, retries by hand, a restart, and the purge of a person.
import type { Scenario } from '../../kit/example.ts'
import { millisOf } from '../../kit/millis.ts'
import { dailies, sleep } from '../stand-in/payloads.ts'
import { call, connectGarmin, connectStrava, eventually, metricsOf, personOf, type World } from './world.ts'

type Play = Scenario<World>

export const retries: Play = async (stage) => {
  const { strava, settings } = stage.world
  await connectStrava(stage, 'oli', '7007')
  strava.add('701')
  strava.add('702')
  const calls = strava.calls.length
  strava.failures.push(500)
  await strava.tell(stage.send, { id: '701', athlete: '7007' })
  await stage.until('the first call has failed', () => strava.calls.length > calls)
  await strava.tell(stage.send, { id: '702', athlete: '7007' })
  await stage.until('the other one is there', async () => (await metricsOf(stage, 'oli')).length === 1)
  stage.check('an activity that fails holds up no other one of the person', true)
  strava.failures.push(500, 500, 503, 500)
  await eventually(
    stage,
    'it is dead',
    () => stage.emitted('run.dead').some(({ key }) => key.endsWith('/701')),
    1.5 * settings.retry.map(millisOf).reduce((sum, delay) => sum + delay, 0) + 30_000,
  )
  const at = strava.calls.slice(calls).flatMap(({ id, at: time }) => (id === '701' ? [time] : []))
  const delays = settings.retry.map(millisOf)
  const planned = stage.emitted('run.retry').flatMap(({ key, after }) => (key.endsWith('/701') ? [after] : []))
  stage.check(`further attempts were due after ${planned.join(', ')} ms`, planned.join() === delays.join())
  // A call may have to wait for its budget as well.
  const waits = at.slice(1).map((time, n) => time - (at[n] ?? 0))
  stage.check(
    `and came after ${waits.map((ms) => (ms / 1_000).toFixed(1)).join(', ')} s`,
    waits.length === delays.length && waits.every((ms, n) => ms >= (delays[n] ?? 0)),
  )
  const { items } = await stage.app.admin.deadLetters.list({ flow: 'strava-activity', tenant: '7007' })
  stage.check(`then it is a dead letter: ${items[0]?.reason}`, items.length === 1)
  const { status } = await call(stage, 'POST', `/v1/dead-letters/${items[0]?.id}/retry`)
  await stage.until('the retry by hand is done', async () => (await metricsOf(stage, 'oli')).length === 2)
  stage.check('a retry by hand, over the API, has saved it', status < 300)
}

export const restart: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'pam')
  await garmin.push(stage.send, 'dailies', [{ userId: 'garmin-pam', ...dailies() }])
  await stage.restart()
  await stage.idle()
  stage.check('what was acknowledged survives a restart', (await metricsOf(stage, 'pam')).length === 4)
}

export const purge: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'quin')
  await connectGarmin(stage, 'rae')
  for (const userId of ['garmin-quin', 'garmin-rae'])
    await garmin.push(stage.send, 'sleeps', [
      { userId, ...sleep() },
      { userId, summaryId: 'malformed' },
    ])
  await stage.idle()
  const { json } = await call(stage, 'DELETE', '/people/quin')
  stage.check('one connection was removed', json['connections'] === 1)
  const gone = await personOf(stage, 'quin')
  stage.check('nothing is kept of quin', gone.metrics.length === 0 && gone.connections.length === 0)
  const { items } = await stage.app.admin.events.list({ tenant: 'garmin-quin' })
  const sources = [...new Set(items.map(({ source }) => source))].toSorted()
  stage.check(
    `and no payload of ${items.length} events from ${sources.join(', ')} either`,
    sources.includes('garmin') && sources.includes('sluice') && items.every(({ purged }) => purged),
  )
  const deadLetters = await stage.app.admin.deadLetters.list({ tenant: 'garmin-quin' })
  stage.check('nor a dead letter', deadLetters.items.length === 0)
  stage.check('rae still has everything', (await metricsOf(stage, 'rae')).length === 2)
  await garmin.push(stage.send, 'sleeps', [{ userId: 'garmin-quin', ...sleep() }])
  await stage.idle()
  stage.check('quin is unknown now', (await metricsOf(stage, 'quin')).length === 0)
}
