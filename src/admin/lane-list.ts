// `LaneList` filters and orders lanes by what they do, over a scan that serves everybody who watches. The lanes of a page are read
// again, so that they are true.
import type { Millis } from '../clock.ts'
import { INTERNAL_FLOWS } from '../observe/stats/depth.ts'
import {
  getShownState,
  isInLine,
  type LaneScan,
  type LaneScanResult,
  type LaneSummary,
  type ShownLaneState,
} from '../observe/status/lane-scan.ts'

/** `newest`: by creation. `due`: lanes in line, oldest first; running ones; the others by deadline; blocked and held ones last. */
type LaneOrder = 'due' | 'newest'

export interface LaneListFilter {
  readonly states?: readonly ShownLaneState[]
  readonly flow?: string
  readonly tenant?: string
  /** A text in the first 256 characters of the key, ignoring case. */
  readonly q?: string
  readonly order?: LaneOrder
}

export interface ListedLanes {
  readonly ids: readonly string[]
  readonly next: string | undefined
  /** How many lanes match the filter in each state, without `states`. */
  readonly counts: Readonly<Partial<Record<ShownLaneState, number>>>
  /** False if there are more lanes than were read. */
  readonly exact: boolean
}

/** The lanes of one scan in the order of what happens next. */
interface OrderedScan {
  readonly of: readonly LaneSummary[]
  readonly lanes: readonly LaneSummary[]
  /** The places of the lanes in line among those of their flow. */
  readonly ranks: ReadonlyMap<string, number>
}

export class LaneList {
  readonly #scan: LaneScan
  #ordered: OrderedScan = { of: [], lanes: [], ranks: new Map() }

  constructor(scan: LaneScan) {
    this.#scan = scan
  }

  async list(filter: LaneListFilter, cursor: string, n: number): Promise<ListedLanes> {
    const scanned = await this.#scan.read()
    const { now, isExact } = scanned
    const { states, order = 'newest' } = filter
    const wanted = states === undefined ? undefined : new Set(states)
    const all = order === 'due' ? this.#order(scanned).lanes : scanned.lanes.toReversed()
    const counts: Partial<Record<ShownLaneState, number>> = {}
    const found: string[] = []
    const matches = createMatcher(filter)
    for (const lane of all) {
      if (!matches(lane)) continue
      const state = getShownState(lane, now)
      counts[state] = (counts[state] ?? 0) + 1
      if (wanted === undefined || wanted.has(state)) found.push(lane.id)
    }
    const from = cursor === '' ? 0 : Number(cursor)
    const next = found.length > from + n ? String(from + n) : undefined
    return { ids: found.slice(from, from + n), next, counts, exact: isExact }
  }

  /** `rankOf` returns the place of a lane among the lanes of its flow that are in line; undefined if it is not in line. */
  async readRanks(): Promise<ReadonlyMap<string, number>> {
    return this.#order(await this.#scan.read()).ranks
  }

  #order({ lanes, now }: LaneScanResult): OrderedScan {
    if (this.#ordered.of === lanes) return this.#ordered
    const sorted = lanes
      .map((lane) => ({ lane, group: groupOf(lane, now) }))
      .toSorted((one, other) => one.group - other.group || compareByDeadline(one.lane, other.lane))
    const ranks = new Map<string, number>()
    const lengths = new Map<string, number>()
    for (const { lane, group } of sorted) {
      if (group !== IN_LINE) break
      const rank = (lengths.get(lane.flow) ?? 0) + 1
      lengths.set(lane.flow, rank)
      ranks.set(lane.id, rank)
    }
    this.#ordered = { of: lanes, lanes: sorted.map(({ lane }) => lane), ranks }
    return this.#ordered
  }
}

const IN_LINE = 0

function groupOf(lane: LaneSummary, now: Millis): number {
  const state = getShownState(lane, now)
  if (isInLine(lane, state, now)) return IN_LINE
  if (state === 'running') return 1
  return state === 'held' || state === 'blocked' || state === 'idle' ? 3 : 2
}

function compareByDeadline(one: LaneSummary, other: LaneSummary): number {
  return one.due - other.due || one.ticket - other.ticket
}

function createMatcher({ flow, tenant, q }: LaneListFilter): (lane: LaneSummary) => boolean {
  const text = q?.toLowerCase()
  return (lane) =>
    // As in the status: what the engine does for itself is shown only to those who ask for it.
    (flow === undefined ? !INTERNAL_FLOWS.has(lane.flow) : lane.flow === flow) &&
    (tenant === undefined || lane.tenant === tenant) &&
    (text === undefined || lane.keyStart.toLowerCase().includes(text))
}
