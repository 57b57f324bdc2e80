// The small world the histories play in: a few flows, each with one of the settings that the rules speak of, and few
// enough keys and round enough times that lanes meet and deadlines tie often.
import { NEVER, type Millis } from '../../src/clock.ts'
import { laneId, type LaneId } from '../../src/model/identity.ts'
import type { ClaimCaps } from '../../src/model/claim.ts'
import type { WindowParameters } from '../../src/model/place.ts'
import type { RunEndOptions } from '../../src/model/settle.ts'
import type { Placement } from '../../src/store/contract/index.ts'

export const START: Millis = 1_700_000_000_000
export const LEASE: Millis = 200
/** Delays, leases and windows are multiples of this: ties are where the order of tickets shows. */
export const TICK: Millis = 50

export interface FlowSettings {
  readonly name: string
  /** Several: the window differs from event to event, as a function of the event may make it. */
  readonly windows: readonly WindowParameters[]
  readonly cancel: boolean
  readonly caps: ClaimCaps
  readonly perGroup: number | undefined
  readonly end: RunEndOptions
  readonly block: boolean
}

const none: WindowParameters = { quiet: 0, max: 0, maxEvents: 1000, maxBytes: 1_000_000, jitter: 0, leading: false }
const debounce: WindowParameters = { ...none, quiet: 100, max: 300 }
const all: ClaimCaps = { maxEvents: 1000, maxBytes: 1_000_000, lease: LEASE, take: 'all' }
const plainEnd: RunEndOptions = { whileRunning: 'window', keep: 0 }
const plain: FlowSettings = {
  name: 'plain',
  windows: [none],
  cancel: false,
  caps: all,
  perGroup: undefined,
  end: plainEnd,
  block: false,
}

export const FLOWS: readonly FlowSettings[] = [
  plain,
  { ...plain, name: 'debounce', windows: [debounce] },
  { ...plain, name: 'every', windows: [{ ...none, quiet: NEVER, max: 200 }] },
  { ...plain, name: 'pairs', windows: [{ ...debounce, maxEvents: 2 }], caps: { ...all, maxEvents: 2 } },
  { ...plain, name: 'bytes', windows: [{ ...debounce, maxBytes: 12 }], caps: { ...all, maxBytes: 12 } },
  { ...plain, name: 'singles', caps: { ...all, maxEvents: 1 } },
  {
    ...plain,
    name: 'leading',
    windows: [
      { ...debounce, leading: true },
      { ...debounce, quiet: 150, leading: true },
      { ...debounce, leading: false },
    ],
    end: { whileRunning: 'window', keep: 150 },
  },
  { ...plain, name: 'cancel', windows: [{ ...debounce, maxEvents: 3 }], cancel: true },
  {
    ...plain,
    name: 'cancel-pairs',
    windows: [{ ...debounce, max: 600 }, none],
    cancel: true,
    caps: { ...all, maxEvents: 2 },
  },
  { ...plain, name: 'requeue', windows: [debounce], end: { whileRunning: 'requeue', keep: 0 } },
  { ...plain, name: 'take-last', windows: [debounce], caps: { ...all, take: 'last' } },
  { ...plain, name: 'take-first', windows: [debounce], cancel: true, caps: { ...all, take: 'first' } },
  { ...plain, name: 'shared', perGroup: 1 },
  { ...plain, name: 'shared-pairs', windows: [none, debounce], perGroup: 2, caps: { ...all, maxEvents: 2 } },
  { ...plain, name: 'blocking', windows: [none, debounce], block: true, caps: { ...all, maxEvents: 2 } },
  {
    ...plain,
    name: 'mixed',
    windows: [
      debounce,
      { ...none, quiet: 50, max: 50 },
      { ...none, quiet: NEVER, max: 400 },
      { ...none, quiet: 200, max: NEVER },
    ],
  },
  { ...plain, name: 'counted', windows: [{ ...none, quiet: NEVER, max: NEVER, maxEvents: 3 }] },
]

export function flowNamed(name: string): FlowSettings {
  const found = FLOWS.find((flow) => flow.name === name)
  if (found === undefined) throw new Error(`no flow ${name}`)
  return found
}

/** Keys of one tenant are next to each other, so that two keys are one tenant's and three are two tenants'. */
const TENANTS = ['acme', 'acme', 'beta', '']
const KEYS = TENANTS.length

export function tenantOf(key: number): string {
  return TENANTS[key % KEYS] ?? ''
}

const laneIds = new Map<string, LaneId>()
const laneNames = new Map<LaneId, string>()

export function laneOf(flow: string, key: number): LaneId {
  const name = `${flow}/k${key}`
  const known = laneIds.get(name) ?? laneId(flow, `k${key}`)
  laneIds.set(name, known)
  laneNames.set(known, name)
  return known
}

export function laneName(id: LaneId): string {
  return laneNames.get(id) ?? id
}

/** A place in the flow's lane of this key, by one of the flow's windows. */
export function placeIn(flow: FlowSettings, key: number, window: number): Placement {
  const numbers = flow.windows[window % flow.windows.length] ?? none
  return {
    ...numbers,
    lane: laneOf(flow.name, key),
    flow: flow.name,
    key: `k${key}`,
    group: flow.perGroup === undefined ? '' : tenantOf(key),
    cancel: flow.cancel,
  }
}
