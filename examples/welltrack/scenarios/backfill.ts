// The past of a person: a command asks Garmin for it, follows what arrives, and can be continued.
import type { Scenario } from '../../kit/example.ts'
import type { Stage } from '../../kit/stage.ts'
import { backfillCommand } from '../backfill-command.ts'
import { call, connectGarmin, eventually, metricsOf, type World } from './world.ts'

type Play = Scenario<World>

const SECOND = 1_000
const MINUTE = 60 * SECOND
const PERMISSIONS = ['HEALTH_EXPORT', 'ACTIVITY_EXPORT', 'HISTORICAL_DATA_EXPORT']

/** The command as it runs in a terminal. `signal` is Ctrl-C. */
async function command(
  stage: Stage<World>,
  args: readonly string[],
  signal = new AbortController().signal,
): Promise<{ readonly code: number; readonly shown: string }> {
  // The first call creates the key.
  await call(stage, 'GET', '/people/nobody')
  let shown = ''
  const code = await backfillCommand(args, {
    env: { SLUICE_KEY: stage.world.key },
    clock: stage.clock,
    stderr: { isTTY: true, columns: 200, write: (text: string) => (shown += text) },
    signal,
    fetch: (url, init) => stage.send(new URL(url).pathname, init),
  })
  return { code, shown }
}

export const backfill: Play = async (stage) => {
  const { garmin } = stage.world
  await connectGarmin(stage, 'hal', { permissions: PERMISSIONS })
  garmin.pushTo(stage.send)
  // Garmin asks for a minute of patience then, for which nobody wants to wait.
  const isPatient = stage.world.settings.garmin.backfillDays === 100
  if (isPatient) garmin.refusals.push(429)
  const progress = async (): Promise<Readonly<Record<string, unknown>>> =>
    (await call(stage, 'GET', '/backfills/hal-90')).json

  const held = Promise.withResolvers<void>()
  garmin.held = held.promise
  const interrupt = new AbortController()
  const first = command(stage, ['hal', '--days=90'], interrupt.signal)
  const hasHealth = async (): Promise<boolean> => (await progress())['arrived'] === 4 * 90
  await eventually(stage, 'the health data has arrived', hasHealth, 30 * MINUTE)
  stage.check('90 days are 7 requests: 4 of health data, 3 of activities', (await progress())['parts'] === 7)
  interrupt.abort()
  const { code } = await first
  stage.check(`Ctrl-C ends the command with ${code}, and Garmin goes on`, code === 130)
  held.resolve()

  const { code: done, shown } = await command(stage, ['hal', '--days=90'])
  const bars = shown.split('\r\u001b[K').filter((bar) => bar.startsWith('['))
  stage.tell('backfill', bars.at(-1)?.trim() ?? '')
  stage.check(`the same command goes on, and ends with ${done} when all has arrived`, done === 0)
  stage.check('its bar is full: 450 of 450 days', bars.at(-1)?.includes('100 %  450 of 450') === true)
  await stage.idle()
  const end = await progress()
  stage.check('all of it was asked for, and has arrived', end['asked'] === 7 && end['arrived'] === 450)
  stage.check('and is in the metrics', (await metricsOf(stage, 'hal')).length === 90 * 9)
  const accepted = garmin.backfills.filter(({ status }) => status === 202)
  stage.check('the command that was repeated has asked for nothing twice', accepted.length === 7)
  if (!isPatient) return
  const refused = garmin.backfills.findIndex(({ status }) => status === 429)
  stage.check('Garmin was asked too often once, and it went on', refused >= 0 && garmin.backfills.length > refused + 1)
}

export const backfillTokens: Play = async (stage) => {
  const { garmin } = stage.world
  garmin.pushTo(stage.send)
  await connectGarmin(stage, 'xia', { permissions: PERMISSIONS, expired: true })
  const { code } = await command(stage, ['xia', '--days=2'])
  stage.check(`expired tokens of Garmin are refreshed once: ${garmin.refreshes}`, garmin.refreshes === 1 && code === 0)

  garmin.revoke('garmin-xia')
  const refused = await command(stage, ['xia', '--days=3'])
  const says = refused.shown.trim().split('\n').at(-1)
  stage.check(`without tokens, the command ends with ${refused.code}: ${says}`, refused.code === 1)
  await connectGarmin(stage, 'xia', { permissions: PERMISSIONS })
  const again = await command(stage, ['xia', '--days=3'])
  stage.check(`after xia has connected again, the same command ends with ${again.code}`, again.code === 0)

  const wrong = [await command(stage, ['nobody']), await command(stage, ['xia', '--days=91'])]
  for (const { shown } of wrong) stage.tell('command', shown.split('\n')[0] ?? '')
  stage.check(
    'an unknown person and 91 days are refused with the reason',
    wrong.map(({ code: one }) => one).join() === '1,2' && wrong[0]?.shown.includes('not connected') === true,
  )
}
