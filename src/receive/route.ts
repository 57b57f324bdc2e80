// Where an event goes: for each flow that wants it, a place in each of its lanes, or a mark that says why not yet (L2, L2a, L11).
import { keyFault, laneId, ownLaneId } from '../model/identity.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { WAS_NAMED, type Flow } from '../model/flow.ts'
import type { WindowNumbers } from '../model/place.ts'
import type { Mark, Place } from '../store/contract/index.ts'

export interface Routes {
  readonly flows: readonly Flow[]
  /** Flows of other processes, as far as they are known here: whether one wants an event, not where it puts it. */
  readonly foreign: readonly { readonly name: string; wants(event: FlowEvent): boolean }[]
  /** How hard-pressed a flow is, from 0 to 1 (L22). */
  level(flow: string): number
  /** Takes the time that a flow's `on`, `key` and `window` need (L2a). */
  timed<T>(flow: string, asked: () => T): T
}

export interface Routed {
  readonly places: readonly Place[]
  readonly marks: readonly Mark[]
  /** Flows that wanted it and found no key in it. */
  readonly skipped: readonly string[]
}

/** Beyond this an event takes its places later, not while its sender waits (L2). */
const LANES_AT_ONCE = 100

type OfFlow =
  | { readonly kind: 'places'; readonly places: readonly Place[] }
  | { readonly kind: 'mark'; readonly mark: Mark }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'unwanted' }

/** `to`: only these flows. */
export function route(event: FlowEvent, routes: Routes, to?: ReadonlySet<string>): Routed {
  const places: Place[] = []
  const marks: Mark[] = []
  const skipped: string[] = []
  for (const flow of routes.flows) {
    if (isOurs(event) !== flow.internal || (to !== undefined && !to.has(flow.name))) continue
    const routed = placesIn(flow, event, routes, to !== undefined)
    if (routed.kind === 'mark') marks.push(routed.mark)
    else if (routed.kind === 'skipped') skipped.push(flow.name)
    else if (routed.kind === 'places') {
      if (places.length + routed.places.length > LANES_AT_ONCE) {
        marks.push({ flow: flow.name, reason: 'fan-out', error: `${routed.places.length} lanes` })
      } else places.push(...routed.places)
    }
  }
  if (!isOurs(event)) {
    const error = to === undefined ? 'This process does not serve it.' : WAS_NAMED
    for (const name of elsewhere(event, routes, to)) marks.push({ flow: name, reason: 'unknown-flow', error })
  }
  return { places, marks, skipped }
}

/** Flows that this process does not serve. One that was named and is gone by now still has a claim to the event. */
function elsewhere(event: FlowEvent, routes: Routes, to: ReadonlySet<string> | undefined): readonly string[] {
  if (to !== undefined) return [...to].filter((name) => !routes.flows.some((flow) => flow.name === name))
  return routes.foreign.filter((flow) => flow.wants(event)).map((flow) => flow.name)
}

/** What the engine publishes to itself is nobody else's business. */
export const OUR_SOURCES = 'sluice.'

export function isOurs(event: { readonly source?: string }): boolean {
  return event.source?.startsWith(OUR_SOURCES) === true
}

/** All its places in one flow, however many. `named`: the sender chose the flow, which is not asked whether it wants it. */
export function placesIn(flow: Flow, event: FlowEvent, routes: Routes, named = false): OfFlow {
  return routes.timed(flow.name, () => askedOf(flow, event, routes.level(flow.name), named))
}

function askedOf(flow: Flow, event: FlowEvent, level: number, named: boolean): OfFlow {
  try {
    if (!named && !flow.wants(event)) return { kind: 'unwanted' }
  } catch (error) {
    return failed(flow, `${ON_THREW}: ${textOf(error)}`)
  }
  try {
    const group = flow.share === undefined ? '' : (event.tenant ?? NO_TENANT)
    const common = { flow: flow.name, group, cancel: flow.whileRunning === 'cancel' }
    const window = flow.windowOf(event, level)
    if (flow.keysOf === undefined) {
      return { kind: 'places', places: [place(ownLaneId(flow.name, event.id), event.id, common, window)] }
    }
    const keys = keysIn(flow.keysOf(event))
    if (keys.length === 0) return { kind: 'skipped' }
    return { kind: 'places', places: keys.map((key) => place(laneId(flow.name, key), key, common, window)) }
  } catch (error) {
    return failed(flow, textOf(error))
  }
}

/** Whether the flow wants the event was never answered: it is to be asked again. */
export const ON_THREW = 'on threw'

function failed(flow: Flow, error: string): OfFlow {
  return { kind: 'mark', mark: { flow: flow.name, reason: 'key-failed', error: error.slice(0, 2_000) } }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Lanes without a tenant are a group of their own. */
const NO_TENANT = '-'

type Common = Pick<Place, 'flow' | 'group' | 'cancel'>

function place(lane: string, key: string, { flow, group, cancel }: Common, window: WindowNumbers): Place {
  const { quiet, max, maxEvents, maxBytes, jitter, leading } = window
  return { lane, flow, key, group, cancel, quiet, max, maxEvents, maxBytes, jitter, leading }
}

/** `undefined`, `null` and `[]` are no key, `''` is one; several collapse to those that differ (L11). */
function keysIn(found: unknown): readonly string[] {
  const list = Array.isArray(found) ? (found as readonly unknown[]) : [found]
  const keys = new Set<string>()
  for (const key of list) {
    if (key === undefined || key === null) continue
    if (typeof key !== 'string') throw new TypeError(`key gave ${describe(key)}; a key is text, or a list of texts.`)
    const fault = keyFault(key)
    if (fault !== undefined) throw new TypeError(`key gave a text that is ${fault}; a key is well-formed, up to 16 KB.`)
    keys.add(key)
  }
  return [...keys]
}

function describe(value: unknown): string {
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
