// What happens with Garmin: pushes, replacements, malformed items, people who come and go.
import type { Scenario } from '../../kit/example.ts'
import { dailies, garminActivity, sleep, stress, userMetrics } from '../stand-in/payloads.ts'
import { call, connectGarmin, metricsOf, personOf, type World } from './world.ts'

type Play = Scenario<World>

export const everyMapping: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'ada')
  const userId = 'garmin-ada'
  const pushes = [
    await garmin.push(stage.send, 'sleeps', [{ userId, ...sleep() }]),
    await garmin.push(stage.send, 'stressDetails', [{ userId, ...stress() }]),
    await garmin.push(stage.send, 'userMetrics', [{ userId, ...userMetrics(), vo2MaxCycling: 44 }]),
    await garmin.push(stage.send, 'dailies', [{ userId, ...dailies() }]),
    await garmin.push(stage.send, 'activities', [{ userId, ...garminActivity() }]),
  ]
  await stage.idle()
  stage.check(
    `each push was answered with ${[...new Set(pushes)].join()}`,
    pushes.every((status) => status === 200),
  )
  const found = (await metricsOf(stage, 'ada')).toSorted()
  stage.tell('ada', found.join(', '))
  const wanted = [
    'activity 1800 seconds',
    'calories 512 kcal',
    'distance 6320.5 meters',
    'resting_hr 54 bpm',
    'sleep 26400 seconds',
    'spo2 95.3 %',
    'steps 8412 steps',
    'stress 34 score',
    'vo2max 48.2 ml/kg/min',
    'vo2max_cycling 44 ml/kg/min',
  ]
  stage.check('ada has all ten metrics', found.join() === wanted.join())
}

export const duplicatesAndReplacement: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'ben')
  const userId = 'garmin-ben'
  const early = { ...sleep(), durationInSeconds: 9_000, validation: 'AUTO_TENTATIVE', sleepLevelsMap: {} }
  garmin.slow = 2
  await garmin.push(stage.send, 'sleeps', [{ userId, ...early }])
  await stage.idle()
  const duplicates = stage.emitted('event.duplicate').length
  stage.check(`Garmin sent twice more, since the answer seemed slow: ${duplicates} duplicates`, duplicates >= 2)
  stage.check('the sleep is there once', (await metricsOf(stage, 'ben')).join() === 'sleep 9000 seconds,spo2 95.3 %')
  stage.tell('ben', 'wakes up, and Garmin pushes the whole night')
  await garmin.push(stage.send, 'sleeps', [{ userId, ...sleep() }])
  await stage.idle()
  const found = await metricsOf(stage, 'ben')
  stage.check('the whole night has replaced it', found.join() === 'sleep 26400 seconds,spo2 95.3 %')
  const { metrics } = await personOf(stage, 'ben')
  stage.check(
    'with its own end',
    metrics.every(({ end }) => end === '2026-11-18T05:50:00Z'),
  )
}

export const malformedAmongMany: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'cleo')
  await connectGarmin(stage, 'dan')
  const userId = 'garmin-cleo'
  const { restingHeartRateInBeatsPerMinute: _, ...incomplete } = dailies()
  await garmin.push(stage.send, 'dailies', [
    { userId, ...incomplete },
    { userId, summaryId: 'empty', calendarDate: '2026-11-18' },
    { userId: 'garmin-dan', ...dailies() },
    { ...sleep(), userId: 'garmin-dan', calendarDate: 'yesterday' },
  ])
  await garmin.push(stage.send, 'sleeps', [
    { userId, summaryId: 'headless', durationInSeconds: 100 },
    { userId, callbackURL: 'https://apis.garmin.com/wellness-api/rest/sleeps?token=1' },
  ])
  await stage.idle()
  // A dead letter becomes an event of its own within a second, so its report can come after the other lanes are idle.
  await stage.until('each dead letter has its report', () => stage.world.sentry.log.length >= 4, 60_000)
  await stage.idle()
  const reports = stage.world.sentry.log.map(({ path, headers, body }) => {
    const [, , event = '{}'] = body.split('\n')
    const { event_id: id } = JSON.parse(event) as { event_id: string }
    return {
      id,
      isWhole: path === '/api/42/envelope/' && headers.get('x-sentry-auth')?.includes('public-key') === true,
    }
  })
  const ids = new Set(reports.map(({ id }) => id))
  stage.tell('sentry', `${reports.length} reports`)
  stage.check('Sentry has one report of each dead letter', reports.length >= 4 && ids.size === reports.length)
  stage.check(
    'in its own form',
    reports.every(({ isWhole }) => isWhole),
  )
  const { metrics } = await personOf(stage, 'cleo')
  stage.check('what is there was taken', metrics.map(({ type }) => type).join() === 'calories,distance,steps')
  stage.check(
    'and what was missing is recorded',
    metrics.every(({ missing }) => missing.join() === 'restingHeartRateInBeatsPerMinute'),
  )
  stage.check('the other person in the same push has every metric', (await metricsOf(stage, 'dan')).length === 4)
  const { items } = await stage.app.admin.deadLetters.list({ flow: 'garmin-metrics' })
  const reasons = items.filter(({ events }) => events.length === 1).map(({ reason }) => reason)
  for (const reason of reasons) stage.tell('dead', reason)
  stage.check('the malformed ones are dead letters at once, with the reason', reasons.length >= 4)
  stage.check(
    'one says: no startTimeInSeconds',
    reasons.some((reason) => reason.includes('startTimeInSeconds')),
  )
  stage.check(
    'a ping says how to change it to a push',
    reasons.some((reason) => reason.includes('Choose push')),
  )
}

export const malformedVersion: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'uma')
  const userId = 'garmin-uma'
  await stage.app.admin.flows.pause('garmin-metrics', { reason: 'maintenance', by: 'an operator' })
  await garmin.push(stage.send, 'dailies', [{ userId, ...dailies() }])
  await garmin.push(stage.send, 'dailies', [{ userId, ...dailies(), calendarDate: 'today' }])
  await garmin.push(stage.send, 'dailies', [{ userId, ...dailies(), steps: 9_000 }])
  stage.tell('uma', 'sent three versions of a day while the flow was paused, the second of them malformed')
  await stage.app.admin.flows.resume('garmin-metrics')
  await stage.idle({ flows: ['garmin-metrics'] })
  const { items } = await stage.app.admin.runs.list({ flow: 'garmin-metrics', tenant: userId })
  stage.check(`one run took all three, and ended as ${items[0]?.kind}`, items.length === 1)
  const deadLetters = await stage.app.admin.deadLetters.list({ flow: 'garmin-metrics', tenant: userId })
  const [deadLetter] = deadLetters.items
  stage.check(
    `only the malformed version is a dead letter: ${deadLetter?.reason}`,
    deadLetters.items.length === 1 && deadLetter?.events.length === 1 && deadLetter.reason.includes('calendarDate'),
  )
  const found = await metricsOf(stage, 'uma')
  stage.check('the newest version is in the metrics', found.length === 4 && found.includes('steps 9000 steps'))
}

export const unknownPerson: Play = async (stage) => {
  const { garmin } = stage.world
  const userId = 'garmin-eve'
  await garmin.push(stage.send, 'dailies', [{ userId, ...dailies() }])
  await garmin.push(stage.send, 'sleeps', [{ userId, ...sleep() }])
  await stage.idle()
  const dropped = (): number => stage.emitted('run.dropped').filter(({ tenant }) => tenant === userId).length
  await stage.until('both items were dropped', () => dropped() === 2)
  stage.check('nobody knows eve: her items are dropped', (await metricsOf(stage, 'eve')).length === 0)
  stage.tell('eve', 'connects')
  await connectGarmin(stage, 'eve')
  await stage.until('the dropped items are replayed', async () => (await metricsOf(stage, 'eve')).length === 6)
  stage.check('what was dropped is in the metrics now', (await metricsOf(stage, 'eve')).length === 6)
}

export const leaveAndReturn: Play = async (stage) => {
  const { garmin, notify } = stage.world
  const userId = 'garmin-fay'
  await connectGarmin(stage, 'fay')
  const before = notify.log.length
  await garmin.push(stage.send, 'deregistrations', [{ userId }])
  await stage.until('the person is notified', () => notify.log.length > before)
  await stage.idle()
  const [connection] = (await personOf(stage, 'fay')).connections
  stage.check('fay is disconnected, without tokens', connection?.isConnected === false && !connection.hasTokens)
  const told = notify.log.slice(before).map((request) => (request.json() as { profileId?: string }).profileId)
  stage.check('fay was notified once', told.join() === 'fay')
  await garmin.push(stage.send, 'dailies', [{ userId, ...dailies() }])
  await stage.idle()
  stage.check('an item that comes now is dropped', (await metricsOf(stage, 'fay')).length === 0)
  stage.tell('fay', 'registers again, as somebody new')
  const tokens = garmin.connect(userId)
  const body = { provider: 'garmin', externalId: userId, profileId: 'fay-again', tokens }
  const { json } = await call(stage, 'POST', '/connections', body)
  stage.check('the old id finds the old profile', json['profileId'] === 'fay')
  await stage.until('what came meanwhile is there', async () => (await metricsOf(stage, 'fay')).length === 4)
}

export const permissions: Play = async (stage) => {
  const { garmin } = stage.world
  const userId = 'garmin-gus'
  await connectGarmin(stage, 'gus', { permissions: ['HEALTH_EXPORT', 'ACTIVITY_EXPORT', 'HISTORICAL_DATA_EXPORT'] })
  const change = (changeTimeInSeconds: number, granted: readonly string[]): Promise<number> =>
    garmin.push(stage.send, 'userPermissionsChange', [
      { userId, summaryId: `change-${changeTimeInSeconds}`, permissions: granted, changeTimeInSeconds },
    ])
  await change(1_800_000_200, ['HEALTH_EXPORT'])
  await stage.idle()
  await change(1_800_000_100, ['HEALTH_EXPORT', 'ACTIVITY_EXPORT', 'HISTORICAL_DATA_EXPORT'])
  await stage.idle()
  const [connection] = (await personOf(stage, 'gus')).connections
  stage.check(
    'the newest change counts, also when an older one comes later',
    JSON.stringify(connection?.metadata['permissions']) === '["HEALTH_EXPORT"]',
  )
  await garmin.push(stage.send, 'activities', [{ userId, ...garminActivity() }])
  await garmin.push(stage.send, 'userMetrics', [{ userId, ...userMetrics() }])
  await stage.idle()
  stage.check('no activity is kept any more', (await metricsOf(stage, 'gus')).join() === 'vo2max 48.2 ml/kg/min')
  const asked = garmin.backfills.length
  await call(stage, 'POST', '/backfills', { id: 'gus-1', profileId: 'gus', days: 30 })
  await stage.idle()
  const { json } = await call(stage, 'GET', '/backfills/gus-1')
  stage.check(
    `and nothing of the past is asked for: ${JSON.stringify(json['reasons'])}`,
    garmin.backfills.length === asked && json['refused'] === 5,
  )
}
