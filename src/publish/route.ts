// `route` decides where an event goes: for each matching flow, a placement in each of its lanes, or a record of why not
// yet (L2, L2a, L11).
import type { Clock, Millis } from '../clock.ts'
import { messageOf, SluiceError } from '../errors.ts'
import { ENGINE_SOURCE, OWN_SOURCES, type EventInput } from '../model/event.ts'
import { findKeyFault, laneId, keylessLaneId } from '../model/identity.ts'
import { FlowEvent, toTypedEvent } from '../model/flow-event.ts'
import { NOT_SERVED_HERE, type Flow } from '../model/flow.ts'
import type { WindowParameters } from '../model/place.ts'
import { NO_SKIPS, type Skip } from '../model/routing.ts'
import { findDefinition } from '../model/typed-event.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { LeasedUnroutedEvent, PlaceItem, Placement, UnroutedFlow } from '../store/contract/index.ts'

export interface Routes {
  readonly flows: readonly Flow[]
  /** The known flows of other processes: whether one matches an event, not where it places it. */
  readonly foreign: readonly { readonly name: string; wants(event: FlowEvent): boolean }[]
  /** The pressure on a flow, from 0 to 1 (L22). */
  pressureLevel(flow: string): number
  /** Measures the time of a flow's `on`, `key` and `window` (L2a). */
  measure<T>(flow: string, call: () => T): T
}

/** `RouteTable` is the app's own table of routes, with the epoch at which it was read (L18). */
export interface RouteTable {
  readonly routes: () => Routes
  readonly routesEpoch: () => number
  /** Reads the routes again. */
  readonly refreshRoutes: () => Promise<void>
}

export interface RouteResult {
  readonly placements: readonly Placement[]
  readonly unrouted: readonly UnroutedFlow[]
  /** The flows that match the event and found no key in it. */
  readonly skips: readonly Skip[]
}

/** Beyond this, an event gets its placements later, not while its sender waits (L2). */
const MAX_LANES = 100

type FlowRoute =
  | { readonly kind: 'placed'; readonly placements: readonly Placement[] }
  | { readonly kind: 'unrouted'; readonly entry: UnroutedFlow }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'unwanted' }

/** `to` restricts the flows. */
export function route(event: FlowEvent, routes: Routes, to?: ReadonlySet<string>): RouteResult {
  const placements: Placement[] = []
  const unrouted: UnroutedFlow[] = []
  let skips = NO_SKIPS
  for (const flow of routes.flows) {
    if (isReservedSource(event) !== flow.isInternal || (to !== undefined && !to.has(flow.name))) continue
    const routed = placementsIn(flow, event, routes, to !== undefined)
    if (routed.kind === 'unrouted') unrouted.push(routed.entry)
    else if (routed.kind === 'skipped') skips = [...skips, createNoKeySkip(flow)]
    else if (routed.kind === 'placed') {
      if (placements.length + routed.placements.length > MAX_LANES) {
        unrouted.push({ flow: flow.name, reason: 'fan-out', error: `${routed.placements.length} lanes` })
      } else placements.push(...routed.placements)
    }
  }
  if (!isReservedSource(event)) {
    const error = to === undefined ? 'This process does not serve it.' : NOT_SERVED_HERE
    for (const name of findForeignFlows(event, routes, to)) unrouted.push({ flow: name, reason: 'unknown-flow', error })
  }
  return { placements, unrouted, skips }
}

/** `createNoKeySkip` returns the skip of a flow that found no key in an event. */
function createNoKeySkip({ name }: Pick<Flow, 'name'>): Skip {
  return { flow: name, reason: 'no-key' }
}

/** `findForeignFlows` returns the flows that this process does not serve. A flow that the sender named and that is
    gone by now still counts. */
function findForeignFlows(event: FlowEvent, routes: Routes, to: ReadonlySet<string> | undefined): readonly string[] {
  if (to !== undefined) return [...to].filter((name) => !routes.flows.some((flow) => flow.name === name))
  return routes.foreign.filter((flow) => flow.wants(event)).map((flow) => flow.name)
}

export function isReservedSource(event: { readonly source?: string | undefined }): boolean {
  return event.source?.startsWith(OWN_SOURCES) === true
}

/** `placementsIn` returns all placements in one flow, however many. With `named`, the sender chose the flow, and its
    `on` is not called. */
export function placementsIn(flow: Flow, event: FlowEvent, routes: Routes, named = false): FlowRoute {
  return routes.measure(flow.name, () => routeToFlow(flow, event, routes.pressureLevel(flow.name), named))
}

function routeToFlow(flow: Flow, event: FlowEvent, level: number, named: boolean): FlowRoute {
  try {
    if (!named && !flow.matches(event)) return { kind: 'unwanted' }
  } catch (error) {
    return createUnroutedFlow(flow, 'key-failed', `${ON_THREW}: ${messageOf(error)}`)
  }
  const definition = findDefinition(flow.definitions, event)
  const typed = definition === undefined ? event : toTypedEvent(event, definition)
  const fault = definition === undefined ? undefined : findDataFault(typed)
  if (fault !== undefined) return createUnroutedFlow(flow, 'schema-failed', fault)
  try {
    const group = flow.share === undefined ? '' : (event.tenant ?? NO_TENANT)
    const common = { flow: flow.name, group, cancel: flow.whileRunning(typed) === 'cancel' }
    const window = flow.computeWindow(typed, level)
    if (flow.selectKeys === undefined) {
      return {
        kind: 'placed',
        placements: [createPlacement(keylessLaneId(flow.name, event.id), event.id, common, window)],
      }
    }
    const keys = parseKeys(flow.selectKeys(typed))
    if (keys.length === 0) return { kind: 'skipped' }
    const windowOf = (key: string): WindowParameters => (flow.holdsBack?.(key) === true ? UNBOUNDED : window)
    const placements = keys.map((key) => createPlacement(laneId(flow.name, key), key, common, windowOf(key)))
    return { kind: 'placed', placements }
  } catch (error) {
    return createUnroutedFlow(flow, 'key-failed', messageOf(error))
  }
}

/** `findDataFault` returns why the schema of a typed event rejects its data. */
function findDataFault(event: FlowEvent): string | undefined {
  try {
    void event.data
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** The prefix of an error thrown by `on`: whether the flow matches is unknown, so `on` is called again later. */
const ON_THREW = 'on threw'

function createUnroutedFlow(flow: Flow, reason: 'key-failed' | 'schema-failed', error: string): FlowRoute {
  return { kind: 'unrouted', entry: { flow: flow.name, reason, error: error.slice(0, 2_000) } }
}

/** The window of a lane that is sent its history first: it stays open until the end of the history. */
const UNBOUNDED: WindowParameters = {
  quiet: Infinity,
  max: Infinity,
  maxEvents: Infinity,
  maxBytes: Infinity,
  jitter: 0,
  leading: false,
}

/** Lanes without a tenant form their own group. */
const NO_TENANT = '-'

type PlacementFields = Pick<Placement, 'flow' | 'group' | 'cancel'>

function createPlacement(
  lane: string,
  key: string,
  { flow, group, cancel }: PlacementFields,
  window: WindowParameters,
): Placement {
  const { quiet, max, maxEvents, maxBytes, jitter, leading } = window
  return { lane, flow, key, group, cancel, quiet, max, maxEvents, maxBytes, jitter, leading }
}

/** `parseKeys` treats `undefined`, `null` and `[]` as no key, and `''` as a key. Equal keys collapse into one (L11). */
function parseKeys(found: unknown): readonly string[] {
  const list = Array.isArray(found) ? (found as readonly unknown[]) : [found]
  const keys = new Set<string>()
  for (const key of list) {
    if (key === undefined || key === null) continue
    if (typeof key !== 'string')
      throw new TypeError(`key must return a text or a list of texts; got ${describeKind(key)}.`)
    const fault = findKeyFault(key)
    if (fault !== undefined)
      throw new TypeError(`key must return well-formed text of up to 16 KB; got a text that is ${fault}.`)
    keys.add(key)
  }
  return [...keys]
}

function describeKind(value: unknown): string {
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * `assertSourceNotReserved` rejects the engine's own sources. An event of the app with such a source would reach only internal
 * flows, or could raise alerts.
 */
export function assertSourceNotReserved(events: readonly EventInput[]): void {
  const ours = events.find(
    (one) => typeof one?.source === 'string' && (isReservedSource(one) || one.source === ENGINE_SOURCE),
  )
  if (ours === undefined) return
  throw new SluiceError(
    'EVENT_INVALID',
    `source must not be '${ENGINE_SOURCE}' or begin with '${OWN_SOURCES}', which only the engine uses: ${ours.source}; nothing was stored.`,
  )
}

/** `parseTargetFlows` returns the flows that `to` names, and rejects unknown and internal ones. */
export function parseTargetFlows(to: unknown, { flows, foreign }: Routes): ReadonlySet<string> {
  const names: readonly unknown[] = Array.isArray(to) ? to : [to]
  if (names.length === 0) {
    throw new SluiceError('EVENT_INVALID', 'to must not be an empty list. Name a flow, or omit to. Nothing was stored.')
  }
  const known = new Set([...flows.filter((flow) => !flow.isInternal), ...foreign].map(({ name }) => name))
  const named = new Set<string>()
  for (const name of names) {
    if (typeof name !== 'string' || !known.has(name)) {
      throw new SluiceError(
        'EVENT_INVALID',
        `to must name existing flows; got ${JSON.stringify(name)}. Nothing was stored.`,
      )
    }
    named.add(name)
  }
  return named
}

const RETRY_AFTER: Millis = 60_000

/** `UnroutedPlacement` is the result for one unrouted event. */
export type UnroutedPlacement = Required<Extract<PlaceItem, { readonly kind: 'unrouted' }>>

/** `placeUnrouted` places an event that could not be routed when it arrived, or keeps it unrouted (L2, L2a). */
export function placeUnrouted(entry: LeasedUnroutedEvent, routes: Routes): UnroutedPlacement {
  const { id, token, flow: name, reason, error } = entry
  const event = new FlowEvent(entry.event)
  const placed = { kind: 'unrouted', id, token, confidential: event.encrypted } as const
  // The event was not routed at all: the process that stored it had old routes.
  if (name === '') {
    const { placements, unrouted, skips } = route(event, routes)
    return { ...placed, placements, unrouted: unrouted.map((one) => ({ ...one, after: 0 })), skips }
  }
  // An event can address internal flows only if the engine published it.
  const flow = routes.flows.find((one) => one.name === name && one.isInternal === isReservedSource(event))
  const left = reason === 'outbox' ? ({ reason: 'unknown-flow', error: NOT_SERVED_HERE } as const) : { reason, error }
  const unserved = { kind: 'unrouted', entry: { flow: name, ...left } } as const
  // The flow is known to want the event, unless its `on` threw or no process could call it.
  const isWanted = reason === 'unknown-flow' ? error === NOT_SERVED_HERE : !error.startsWith(ON_THREW)
  const routed = flow === undefined ? unserved : placementsIn(flow, event, routes, isWanted)
  const placements = routed.kind === 'placed' ? routed.placements : []
  const unrouted = routed.kind === 'unrouted' ? [{ ...routed.entry, after: RETRY_AFTER }] : []
  const skips = routed.kind === 'skipped' && flow !== undefined ? [createNoKeySkip(flow)] : NO_SKIPS
  return { ...placed, placements, unrouted, skips }
}

/** The bound on `on`, `key` and `window` together, which run while a sender waits (L2a). */
const MAX_ROUTING_TIME: Millis = 50

/** `RoutingTime` measures the functions of each flow, and raises one alert for each flow that takes longer. */
export class RoutingTime {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #emit: AnyListener
  readonly #alerted = new Set<string>()

  constructor(clock: Pick<Clock, 'monotonic'>, emit: AnyListener) {
    this.#clock = clock
    this.#emit = emit
  }

  readonly measure = <T>(flow: string, call: () => T): T => {
    const began = this.#clock.monotonic()
    try {
      return call()
    } finally {
      this.#check(flow, this.#clock.monotonic() - began)
    }
  }

  #check(flow: string, took: Millis): void {
    if (took <= MAX_ROUTING_TIME || this.#alerted.has(flow)) return
    this.#alerted.add(flow)
    const text = `on, key and window of ${flow} took ${Math.round(took)} ms for one event; at most ${MAX_ROUTING_TIME} ms are allowed. They must not look anything up.`
    this.#emit('alert.raised', { alert: `slow-routing:${flow}`, text })
  }
}
