// The caps of the design, the switch, and what happens to a window whose alert changes.
import type { Scenario } from '../../kit/example.ts'
import { EVENT_TYPES } from '../domain/event-types.ts'
import type { World } from '../world.ts'
import { Workspace, type AlertInApi } from './workspace.ts'

const CAP = 2_000
const KEYS = 20

const eventsPerKey: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { path } = await workspace.alert()
  const began = stage.clock.monotonic()
  const ids = await workspace.happen('trace:errors', CAP)
  await workspace.until(path, 1)
  workspace.checkWait(path, 0, began, 0)
  const [rest = ''] = await workspace.happen()
  const since = workspace.published
  await workspace.idle()
  workspace.checkIds(`at ${CAP} events the window is sent at once, and nothing is dropped`, path, [ids, [rest]])
  workspace.checkWait(path, 1, since, 60)
  await checkCount(workspace, 'windows-full', 1)
}

const keysPerWorkspace: Scenario<World> = async (stage) => {
  const [workspace, other] = [await Workspace.open(stage), await Workspace.open(stage)]
  const quiet = await other.alert()
  const alerts: AlertInApi[] = []
  const ids: string[] = []
  for (let n = 0; n < 3; n++) alerts.push(await workspace.alert({ event_types: EVENT_TYPES }))
  await other.happen()
  const types = EVENT_TYPES.slice(0, 8)
  for (const type of types) {
    ids.push(...(await workspace.happen(type)))
    await workspace.pass(1)
  }
  // 24 windows are open, and 20 may be: the oldest four are sent within a second.
  const sent = (): number => alerts.reduce((sum, { path }) => sum + workspace.got(path).length, 0)
  await stage.until('the oldest windows are sent', () => sent() >= alerts.length * types.length - KEYS)
  await workspace.pass(5)
  const first = alerts.flatMap(({ path }) => workspace.got(path).map(({ event_type }) => event_type))
  workspace.check(
    `of ${alerts.length * types.length} windows, ${sent()} were sent: ${first.join(', ')}`,
    sent() === 4 && first.every((type) => type === types[0] || type === types[1]),
  )
  workspace.check('another workspace is not affected', other.got(quiet.path).length === 0)
  await workspace.idle()
  for (const { path } of alerts) workspace.checkOnce(path, ids)
  await checkCount(workspace, 'windows-cut', 4)
}

const switchedOff: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { id, path } = await workspace.alert()
  const open = [...(await workspace.happen()), ...(await workspace.happen())]
  await stage.until('the window is open', async () => (await workspace.show(id)).windows[0]?.events === 2)
  await workspace.pass(20)
  stage.tell(workspace.name, 'switches debouncing off')
  const since = stage.clock.monotonic()
  await workspace.call('PATCH', `/alerts/${id}`, { debouncing: 'real-time' })
  await workspace.until(path, 1)
  workspace.checkWait(path, 0, since, 0)
  const [b = '', c = ''] = await workspace.happen('trace:errors', 2)
  await workspace.until(path, 3)
  workspace.checkIdsSideBySide('the open window at once, then a POST for each event', path, [open, [b], [c]])
  await workspace.call('PATCH', `/alerts/${id}`, { debouncing: workspace.window(60) })
  const [d = '', e = ''] = await workspace.happen('trace:errors', 2)
  await workspace.idle()
  workspace.checkIdsSideBySide('and on again', path, [open, [b], [c], [d, e]])
  workspace.checkWait(path, 3, workspace.published, 60)
}

const deleted: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const [gone, stays] = [await workspace.alert(), await workspace.alert()]
  const ids = await workspace.happen('trace:errors', 5)
  await stage.until('the window is open', async () => (await workspace.show(gone.id)).windows[0]?.events === 5)
  const { status, json } = await workspace.call('DELETE', `/alerts/${gone.id}`)
  const { events } = json['dropped'] as { events: number }
  workspace.check(`the answer to DELETE is ${status}: ${JSON.stringify(json)}`, status === 200 && events === 5)
  await workspace.idle()
  workspace.check('the deleted alert sends nothing', workspace.got(gone.path).length === 0)
  workspace.checkIds('the other one is not affected', stays.path, [ids])
  await checkCount(workspace, 'events-dropped', 5)
  const dropped = stage.emitted('run.dropped').filter(({ key }) => key.startsWith(gone.id))
  workspace.check(`the run says why: ${dropped[0]?.reason}`, dropped[0]?.reason === 'The alert was deleted.')
  const after = await workspace.call('GET', `/alerts/${gone.id}`)
  workspace.check(`it is gone: ${after.status}`, after.status === 404)
}

const disabled: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const { id, path } = await workspace.alert()
  await workspace.happen('trace:errors', 2)
  await stage.until('the window is open', async () => (await workspace.show(id)).windows[0]?.events === 2)
  await workspace.call('PATCH', `/alerts/${id}`, { enabled: false })
  await workspace.happen()
  await workspace.idle()
  workspace.check('a disabled alert sends nothing', workspace.got(path).length === 0)
  await checkCount(workspace, 'events-dropped', 2)
  await workspace.call('PATCH', `/alerts/${id}`, { enabled: true })
  const ids = await workspace.happen()
  await workspace.idle()
  workspace.checkIds('and enabled again, only what came since', path, [ids])
}

const windows: Scenario<World> = async (stage) => {
  const workspace = await Workspace.open(stage)
  const [short, long] = [await workspace.alert({ debouncing: workspace.window(30) }), await workspace.alert()]
  const began = stage.clock.monotonic()
  await workspace.happen()
  await stage.until('the window is open', async () => (await workspace.show(long.id)).windows.length === 1)
  await workspace.call('PATCH', `/alerts/${long.id}`, { debouncing: workspace.window(300) })
  await workspace.idle()
  workspace.checkWait(short.path, 0, began, 30)
  // The open window ends as it began, like in the product.
  workspace.checkWait(long.path, 0, began, 60)
  const presets = { 'high-frequency': [true, 30_000], 'low-frequency': [true, 300_000], 'real-time': [false, 60_000] }
  for (const [name, wanted] of Object.entries(presets)) {
    const { json } = await workspace.call('PATCH', `/alerts/${long.id}`, { debouncing: name })
    const { enabled, window_size } = json['debouncing'] as { enabled: boolean; window_size: number }
    workspace.check(
      `${name} is ${enabled ? `${window_size / 1_000} s` : 'off'}`,
      enabled === wanted[0] && window_size === wanted[1],
    )
  }
  const plain = await workspace.alert({ debouncing: undefined })
  workspace.check('the default is 60 s', plain.debouncing.enabled && plain.debouncing.window_size === 60_000)
}

/** A metric of the flow that collects, which other scenarios of a play have raised as well. */
async function checkCount({ stage }: Workspace, name: string, least: number): Promise<void> {
  const text = await stage.app.admin.metrics()
  const [, value = '0'] = new RegExp(`sluice_counts_total\\{[^}]*name="${name}"[^}]*\\} (\\d+)`).exec(text) ?? []
  const isRight = stage.isVirtual ? Number(value) === least : Number(value) >= least
  stage.check(`the metric ${name} is ${value}`, isRight)
}

export const LIMITS: Readonly<Record<string, Scenario<World>>> = {
  'A cap on the events of a window': eventsPerKey,
  'A cap on the open windows of a workspace': keysPerWorkspace,
  'Debouncing is switched off and on at run time': switchedOff,
  'A deleted alert drops its window': deleted,
  'A disabled alert is silent': disabled,
  'A window for each alert, and the presets of the design': windows,
}
