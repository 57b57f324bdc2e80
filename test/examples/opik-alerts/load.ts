// Many events over many alerts in real time: every event is in exactly one notification, there are as many notifications as windows by our
// own count, and windows that end in the same second are sent in time.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from 'sluice'
import { EVENT_TYPES, type EventType } from '../../../examples/opik-alerts/domain/event-types.ts'
import { occurred } from '../../../examples/opik-alerts/domain/events.ts'
import type { NotificationBody } from '../../../examples/opik-alerts/domain/notification.ts'
import { opikAlerts } from '../../../examples/opik-alerts/example.ts'
import { TRUE_TIMES, type World } from '../../../examples/opik-alerts/world.ts'
import { chance } from '../../../examples/kit/chance.ts'
import { openPlace } from '../../../examples/kit/postgres.ts'
import { Stage } from '../../../examples/kit/stage.ts'

interface LoadOptions {
  readonly store: string
  readonly seed: number
  /** A workspace has an alert for each of the ten event types. */
  readonly workspaces: number
  /** Each alert gets a burst in each round. */
  readonly rounds: number
  readonly eventsPerBurst: number
  readonly progress?: (text: string) => void
}

export interface LoadResult {
  readonly alerts: number
  readonly events: number
  readonly notifications: number
  /** By our own count, from the times at which the events were published. */
  readonly windows: number
  /** Events that came so close to the end of a window that our count may be wrong. */
  readonly doubtful: number
  readonly missing: number
  readonly repeated: number
  readonly deadLetters: number
  readonly eventsPerSecond: number
  /** Of windows that all end within one second: how late the notification arrived, measured from the call that published the event. */
  readonly late: { readonly windows: number; readonly p50: number; readonly p99: number; readonly most: number }
}

const WINDOW = 10_000
const ROUND = 17_000
/** Bursts begin within this time of their round, and last so long. */
const OFFSET = 3_000
const BURST = 2_000
/** An event this close to the end of a window is doubtful. */
const MARGIN = 1_000
const STEP = 50
const SHORT_WINDOW = 5_000
const FLOWS = ['match', 'collect', 'send']

interface Planned {
  readonly at: number
  readonly id: string
  readonly workspace: string
  readonly type: EventType
}

export interface Published extends Planned {
  /** When the call began, and when it returned. */
  readonly from: number
  readonly to: number
}

type LoadStage = Stage<World>

/** Loads the app on `sqlite`, or on `postgres`. */
export async function loadOn(name: string, options: Omit<LoadOptions, 'store'>): Promise<LoadResult> {
  const place = await openPlace(name)
  try {
    return await load({ ...options, store: place.store })
  } finally {
    await place.close()
  }
}

async function load(options: LoadOptions): Promise<LoadResult> {
  const { store, workspaces, rounds, eventsPerBurst, seed, progress = () => {} } = options
  // The caps have a scenario of their own.
  const env = { ...TRUE_TIMES, MAX_KEYS_PER_WORKSPACE: '1000' }
  const stage = await Stage.open<World>(opikAlerts, { store, env })
  try {
    const names = Array.from({ length: workspaces }, (_, n) => `workspace-${n}`)
    const ids = await createAlerts(stage, names, WINDOW)
    progress(`${ids.length} alerts`)
    const random = chance(seed)
    const published: Published[] = []
    const began = systemClock.monotonic()
    for (let round = 0; round < rounds; round++) {
      const plan = names.flatMap((workspace) =>
        EVENT_TYPES.flatMap((type) => {
          const offset = random.between(0, OFFSET)
          return Array.from({ length: eventsPerBurst }, (_, n): Planned => {
            const at = round * ROUND + offset + (n === 0 ? 0 : random.between(0, BURST))
            return { at, id: `${workspace}-${type}-${round}-${n}`, workspace, type }
          })
        }),
      )
      published.push(...(await publishAll(stage, plan, began)))
      progress(`round ${round + 1} of ${rounds}: ${published.length} events`)
    }
    const spent = sum(
      Map.groupBy(published, ({ at }) => Math.floor(at / ROUND))
        .values()
        .map(duration),
    )
    await stage.idle({ flows: FLOWS, within: 120_000 })
    const bodies = stage.world.receivers.notifications()
    const late = await lateness(stage, names, ids)
    const { items } = await stage.app.admin.deadLetters.list({})
    return {
      alerts: ids.length,
      events: published.length,
      ...judge(published, bodies),
      deadLetters: items.length,
      eventsPerSecond: Math.round((published.length / spent) * 1_000),
      late,
    }
  } finally {
    await stage.close()
  }
}

/** An alert for each workspace and type, so that each event is about exactly one. Returns their ids. */
async function createAlerts(
  stage: LoadStage,
  names: readonly string[],
  window_size: number,
): Promise<readonly string[]> {
  stage.world.apiKey = (await stage.app.admin.keys.create({ name: 'load', role: 'operate' })).secret
  const url = `${stage.url('receivers')}/general`
  const ids: string[] = []
  for (const workspace of names) {
    const made = EVENT_TYPES.map((type) => ({ name: type, workspace, alert_type: 'general', url, event_types: [type] }))
    const answers = await Promise.all(
      made.map((one) => call(stage, 'POST', '/alerts', { ...one, debouncing: { window_size } })),
    )
    ids.push(...answers.map(({ id }) => String(id)))
  }
  return ids
}

async function call(
  stage: LoadStage,
  method: string,
  path: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> {
  const headers = { authorization: `Bearer ${stage.world.apiKey}`, 'content-type': 'application/json' }
  const response = await stage.send(path, { method, headers, body: JSON.stringify(body) })
  const json = (await response.json()) as Readonly<Record<string, unknown>>
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${JSON.stringify(json)}`)
  return json
}

/** Publishes each event at its time, those of one step together. */
async function publishAll(stage: LoadStage, plan: readonly Planned[], began: number): Promise<readonly Published[]> {
  const done: Promise<readonly Published[]>[] = []
  const steps = Map.groupBy(plan, ({ at }) => Math.floor(at / STEP) * STEP)
  for (const [at, events] of [...steps].toSorted(([one], [other]) => one - other)) {
    await sleep(Math.max(0, began + at - systemClock.monotonic()))
    done.push(publish(stage, events))
  }
  return (await Promise.all(done)).flat()
}

async function publish({ app }: LoadStage, events: readonly Planned[]): Promise<readonly Published[]> {
  const from = systemClock.monotonic()
  await app.publish(events.map(({ id, type, workspace }) => occurred({ event_type: type }, { id, tenant: workspace })))
  const to = systemClock.monotonic()
  return events.map((event) => ({ ...event, from, to }))
}

type Judgement = Pick<LoadResult, 'notifications' | 'windows' | 'doubtful' | 'missing' | 'repeated'>

/** Counts the windows of each alert and type by the times of publishing, and looks for each event in the notifications. */
export function judge(published: readonly Published[], bodies: readonly NotificationBody[]): Judgement {
  let [windows, doubtful] = [0, 0]
  for (const events of Map.groupBy(published, ({ workspace, type }) => `${workspace} ${type}`).values()) {
    let ends = -Infinity
    for (const { from, to } of events.toSorted((one, other) => one.to - other.to)) {
      if (Math.abs(to - ends) < MARGIN || Math.abs(from - ends) < MARGIN) doubtful++
      if (to < ends) continue
      windows++
      ends = to + WINDOW
    }
  }
  const seen = bodies.flatMap(({ payload }) => payload.eventIds)
  const different = new Set(seen)
  return {
    notifications: bodies.length,
    windows,
    doubtful,
    missing: published.filter(({ id }) => !different.has(id)).length,
    repeated: seen.length - different.size,
  }
}

/** One event for each alert, so that all windows end within one second. */
async function lateness(
  stage: LoadStage,
  names: readonly string[],
  ids: readonly string[],
): Promise<LoadResult['late']> {
  for (const id of ids) await call(stage, 'PATCH', `/alerts/${id}`, { debouncing: { window_size: SHORT_WINDOW } })
  const { receivers } = stage.world
  const before = receivers.received.length
  const began = systemClock.monotonic() + 500
  const alerts = names.flatMap((workspace) => EVENT_TYPES.map((type) => ({ workspace, type })))
  const calls = new Map<string, number>()
  const waiting = alerts.map(async ({ workspace, type }, n) => {
    const at = (n * 1_000) / alerts.length
    await sleep(Math.max(0, began + at - systemClock.monotonic()))
    const [event] = await publish(stage, [{ at, id: `late-${n}`, workspace, type }])
    if (event !== undefined) calls.set(event.id, event.from)
  })
  await Promise.all(waiting)
  await stage.idle({ flows: FLOWS, within: 60_000 })
  const late = receivers.received.slice(before).flatMap(({ at, body }) => {
    const { payload } = JSON.parse(body) as NotificationBody
    return payload.eventIds.map((id) => at - (calls.get(id) ?? Number.NaN) - SHORT_WINDOW)
  })
  const sorted = late.toSorted((one, other) => one - other)
  const at = (share: number): number => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN)
  return { windows: sorted.length, p50: at(0.5), p99: at(0.99), most: at(1) }
}

function duration(events: readonly Published[]): number {
  return Math.max(...events.map(({ to }) => to)) - Math.min(...events.map(({ from }) => from))
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
