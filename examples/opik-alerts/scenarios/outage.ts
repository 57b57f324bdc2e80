// What the design loses and Sluice sends late: nothing that waits expires.
import type { Scenario } from '../../kit/example.ts'
import { lostEvents, type BucketEvent } from '../stand-in/redis-buckets.ts'
import type { World } from '../world.ts'
import { Workspace } from './workspace.ts'

const TTL = 180

/** The processor is down for ten minutes, while events go on coming. */
const processorDown: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert({ event_types: ['trace:errors', 'trace:cost', 'prompt:created'] })
  const { admin } = stage.app
  const events: BucketEvent[] = []
  const ids: string[] = []
  const happen = async (type: 'trace:errors' | 'trace:cost' | 'prompt:created', count: number): Promise<void> => {
    for (const id of await workspace.happen(type, count)) {
      ids.push(id)
      events.push({ at: workspace.published, key: type })
    }
  }
  await admin.flows.pause('collect', { reason: 'The processor is down.', by: 'scenario' })
  const from = stage.clock.monotonic()
  await happen('trace:errors', 10)
  for (let minute = 0; minute < 10; minute++) {
    await happen('trace:cost', 1)
    if (minute === 5) await happen('prompt:created', 5)
    await workspace.pass(60)
  }
  workspace.check('nothing was sent meanwhile', workspace.got(path).length === 0)
  await stage.until('the alert is raised', async () => (await lateAlert(workspace)) === 'raised')
  const late = (await admin.alerts.list()).find(({ name }) => name === 'late')
  workspace.check(`the alert "late" is raised: ${late?.text}`, late?.state === 'raised')
  const text = await admin.metrics()
  const [, age = '0'] = /sluice_oldest_ready_seconds\{flow="collect"\} ([\d.]+)/.exec(text) ?? []
  workspace.check(`the age is a metric: ${age} s`, Number(age) * 1_000 >= workspace.ms(500))

  const down = { from, to: stage.clock.monotonic() }
  await admin.flows.resume('collect', 'scenario')
  await workspace.idle()
  const lost = lostEvents(events, { window: workspace.ms(60), ttl: workspace.ms(TTL), down })
  workspace.checkOnce(path, ids)
  const missing = ids.length - workspace.got(path).flatMap(({ payload }) => payload.eventIds).length
  workspace.check(
    `processor down for ten minutes: the design would lose ${lost} of ${ids.length} events, here ${missing}`,
    lost === 15 && missing === 0,
  )
  workspace.check(`three late notifications: ${workspace.got(path).length}`, workspace.got(path).length === 3)
  await stage.until('the alert is cleared', async () => (await lateAlert(workspace)) === 'clear')
}

async function lateAlert({ stage }: Workspace): Promise<string | undefined> {
  return (await stage.app.admin.alerts.list()).find(({ name }) => name === 'late')?.state
}

/** The whole app is down for ten minutes. */
const processDown: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { id, path } = await workspace.alert()
  const began = stage.clock.monotonic()
  const ids = await workspace.happen('trace:errors', 12)
  await stage.until('the window is open', async () => (await workspace.show(id)).windows[0]?.events === 12)
  stage.tell('app', 'is down for ten minutes')
  await stage.restart(() => workspace.pass(600))
  const down = { from: began, to: stage.clock.monotonic() }
  await workspace.idle()
  const options = { window: workspace.ms(60), ttl: workspace.ms(TTL), down }
  const lost = lostEvents(
    ids.map(() => ({ at: began, key: id })),
    options,
  )
  workspace.checkIds('one late notification', path, [ids])
  workspace.checkWait(path, 0, down.to, 0)
  workspace.check(`the design would lose ${lost} events, here 0`, lost === 12)
}

export const OUTAGE: Readonly<Record<string, Scenario<World>>> = {
  'The processor is down for ten minutes': processorDown,
  'The app is down for ten minutes': processDown,
}
