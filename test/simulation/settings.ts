// The small world of the histories: a few flows, each with one of the settings in the rules, and few
// keys and round times, so that lanes meet and deadlines are often equal.
import { NEVER, type Millis } from '../../src/clock.ts'
import { laneId, type LaneId } from '../../src/model/identity.ts'
import type { ClaimCaps } from '../../src/model/claim.ts'
import type { WindowParameters } from '../../src/model/place.ts'
import type { RunEndOptions } from '../../src/model/settle.ts'
import type { Placement } from '../../src/store/contract/index.ts'

export const START: Millis = 1_700_000_000_000
export const LEASE: Millis = 200
/** Delays, leases and windows are multiples of this: equal deadlines reveal the order of tickets. */
export const TICK: Millis = 50

export interface FlowSettings {
  readonly name: string
  /** Several windows, because a window function may return a different one for each event. */
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

/** Keys of one tenant are adjacent, so two keys belong to one tenant and three to two. */
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

/** A placement in the flow's lane of this key, with one of the flow's windows. */
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
