// Scenarios 1 to 3 of the design, and the tests that it requires.
import type { Scenario } from '../../kit/example.ts'
import type { World } from '../world.ts'
import { REAL_TIME, Workspace, type AlertInApi } from './workspace.ts'

const singleEvent: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert()
  const began = stage.clock.monotonic()
  const [a = ''] = await workspace.happen()
  await workspace.pass(59)
  workspace.check('after 59 s nothing was sent', workspace.got(path).length === 0)
  await workspace.idle()
  workspace.checkIds('one notification', path, [[a]])
  workspace.checkWait(path, 0, began, 60)
}

const multipleEvents: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert()
  const began = stage.clock.monotonic()
  const ids = [...(await workspace.happen())]
  await workspace.pass(10)
  ids.push(...(await workspace.happen()))
  await workspace.pass(5)
  ids.push(...(await workspace.happen()))
  await workspace.idle()
  workspace.checkIds('one notification about three events', path, [ids])
  workspace.checkWait(path, 0, began, 60)
  const [{ payload } = { payload: undefined }] = workspace.got(path)
  workspace.check(
    `eventCount is ${payload?.eventCount}, aggregationType ${payload?.aggregationType}`,
    payload?.eventCount === 3 && payload.aggregationType === 'consolidated',
  )
  const next = await workspace.happen()
  const since = workspace.published
  await stage.until(
    'the next event opens a window',
    async () => (await firstAlert(workspace))?.windows[0]?.events === 1,
  )
  await workspace.idle()
  workspace.checkIds('two notifications', path, [ids, next])
  workspace.checkWait(path, 1, since, 60)
}

/** As the list of the workspace shows it. */
async function firstAlert(workspace: Workspace): Promise<AlertInApi | undefined> {
  const { json } = await workspace.call('GET', `/workspaces/${workspace.name}/alerts`)
  return (json as unknown as readonly AlertInApi[])[0]
}

const debouncingDisabled: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert({ debouncing: REAL_TIME })
  const began = stage.clock.monotonic()
  const [a = ''] = await workspace.happen()
  await workspace.idle()
  workspace.checkWait(path, 0, began, 0)
  await workspace.pass(10)
  const [b = '', c = ''] = await workspace.happen('trace:errors', 2)
  await workspace.idle()
  workspace.checkIdsSideBySide('a POST for each event, even for two of the same millisecond', path, [[a], [b], [c]])
  workspace.checkWait(path, 2, workspace.published, 0)
}

/** Grouped by alert and event type. */
const pendingKeys: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const event_types = ['trace:errors', 'prompt:created']
  const both = await workspace.alert({ event_types })
  const one = await workspace.alert()
  const ids = [...(await workspace.happen('trace:errors')), ...(await workspace.happen('trace:errors'))]
  const [prompt = ''] = await workspace.happen('prompt:created')
  await workspace.happen('trace:cost')
  await stage.until('the events wait', async () => (await workspace.show(both.id)).windows.length === 2)
  const windows = (await workspace.show(both.id)).windows.map(({ event_type, events }) => `${event_type} ${events}`)
  workspace.check(
    `the API shows the open windows: ${windows.join(', ')}`,
    windows.join() === 'trace:errors 2,prompt:created 1',
  )
  const keys = (await stage.app.admin.lanes.list({ flow: 'collect', tenant: workspace.name })).items.map(
    ({ key }) => key,
  )
  workspace.check('a lane for each alert and type', keys.length === 3 && keys.includes(`${both.id}:prompt:created`))
  await workspace.idle()
  workspace.checkIdsSideBySide('two types, two notifications', both.path, [ids, [prompt]])
  workspace.checkIds('the other alert is about one of them', one.path, [ids])
}

const concurrentEvents: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert()
  const ids = (await Promise.all(Array.from({ length: 100 }, () => workspace.happen()))).flat()
  await workspace.idle()
  workspace.check(
    `100 callers at the same time: ${workspace.got(path).length} notification`,
    workspace.got(path).length === 1,
  )
  workspace.checkOnce(path, ids)
}

/** The first event sets the time, also for a process that starts later. */
const timestampTracking: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { id, path } = await workspace.alert()
  const began = stage.clock.monotonic()
  const ids = [...(await workspace.happen())]
  const isOpen = async (): Promise<boolean> => (await workspace.show(id)).windows.length === 1
  await stage.until('the window is open', isOpen)
  await workspace.pass(30)
  stage.tell('app', 'is restarted')
  await stage.restart()
  ids.push(...(await workspace.happen()))
  await workspace.idle()
  workspace.checkIds('one notification', path, [ids])
  workspace.checkWait(path, 0, began, 60)
}

const serialization: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert()
  const ids = ['"quoted"', "[1,'2']", 'Ä – 漢字 😀', 'a\\b'].map((id) => `${workspace.name} ${id}`)
  for (const id of [...ids, ids[0]])
    await workspace.call('POST', '/v1/events', {
      id,
      source: 'opik',
      type: 'alert.event',
      tenant: workspace.name,
      data: { event_type: 'trace:errors' },
    })
  await workspace.idle()
  workspace.checkIds('the ids arrive as they were, and a repeated one once', path, [ids])
}

export const SEED: Readonly<Record<string, Scenario<World>>> = {
  'Scenario 1: a single event': singleEvent,
  'Scenario 2: multiple events within the window': multipleEvents,
  'Scenario 3: debouncing disabled': debouncingDisabled,
  'Pending keys: one for each alert and event type': pendingKeys,
  'Multiple concurrent events': concurrentEvents,
  'The first event sets the end of the window, also over a restart': timestampTracking,
  'Event ids of any text, over HTTP': serialization,
}
