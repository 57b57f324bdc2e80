// Counts the work that exists right now per flow. It reads the lanes themselves, oldest first, up to a bound.
import type { Millis } from '../../clock.ts'
import { getLaneState, type LaneState } from '../../model/lane-states.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'
import type { LaneScanResult, LaneSummary } from '../status/lane-scan.ts'

/** `Depth` is the backlog of one flow, or of all flows. */
export interface Depth {
  /** Events that wait for their window, a claim, another attempt, or the end of a hold. */
  readonly waiting: number
  /** Events whose run has failed and waits for its next attempt. */
  readonly failing: number
  /** The time since which the oldest work is due: its deadline, or the start of its first attempt. */
  readonly oldest: Millis | undefined
  readonly lanes: Readonly<Partial<Record<LaneState, number>>>
}

export interface Depths {
  readonly flows: ReadonlyMap<string, Depth>
  readonly total: Depth
  /** False if there are more lanes than were read; the numbers are then lower bounds. */
  readonly isComplete: boolean
}

const PAGE = 1_000
const MAX_PAGES = 10
/** `INTERNAL_FLOWS` are the engine's own. Events in them wait on purpose, so they are no backlog. */
export const INTERNAL_FLOWS: ReadonlySet<string> = new Set(['sluice.delayed', 'sluice.replay'])

type LanePage = FindReply<'lanes'>

export async function readDepths(store: Store): Promise<Depths> {
  const flows = new Map<string, DepthSum>()
  const total = new DepthSum()
  const sumsOf = (flow: string): readonly DepthSum[] => {
    if (INTERNAL_FLOWS.has(flow)) return []
    const known = flows.get(flow) ?? new DepthSum()
    flows.set(flow, known)
    return [known, total]
  }
  const stats = await store.stats()
  // The stats of the store know the oldest lane of each flow, however many lanes there are.
  for (const { flow, due = Infinity } of stats.flows) {
    for (const sum of sumsOf(flow)) if (due <= stats.now) sum.addOldest(due)
  }
  let cursor: string | undefined = ''
  for (let pages = 0; cursor !== undefined && pages < MAX_PAGES; pages++) {
    const page: LanePage = await store.find({ kind: 'lanes', filter: {}, cursor, n: PAGE, oldestFirst: true })
    for (const lane of page.items) for (const sum of sumsOf(lane.flow)) sum.add(lane, getLaneState(lane, page.now))
    cursor = page.next
  }
  return { flows, total, isComplete: cursor === undefined }
}

/** `sumDepths` sums up a scan of the lanes, which serves everybody who watches. */
export function sumDepths({ lanes, now, isExact }: LaneScanResult): Depths {
  const flows = new Map<string, DepthSum>()
  const total = new DepthSum()
  for (const lane of lanes) {
    if (INTERNAL_FLOWS.has(lane.flow)) continue
    const known = flows.get(lane.flow) ?? new DepthSum()
    flows.set(lane.flow, known)
    for (const sum of [known, total]) sum.addScanned(lane, getLaneState(lane, now))
  }
  return { flows, total, isComplete: isExact }
}

class DepthSum implements Depth {
  waiting = 0
  failing = 0
  oldest: Millis | undefined
  readonly lanes: Partial<Record<LaneState, number>> = {}

  add(lane: LanePage['items'][number], state: LaneState): void {
    const { run } = lane
    this.lanes[state] = (this.lanes[state] ?? 0) + 1
    this.waiting += lane.waiting + lane.replays
    if (run?.state === 'retrying') {
      this.failing += run.events
      this.addOldest(run.started)
    } else if (run !== undefined && state !== 'running') this.waiting += run.events
    if (state === 'ready') this.addOldest(lane.due)
  }

  addScanned({ waiting, run, due }: LaneSummary, state: LaneState): void {
    const failing = run?.state === 'retrying' ? run.events : 0
    this.lanes[state] = (this.lanes[state] ?? 0) + 1
    this.failing += failing
    this.waiting += waiting - failing
    if (run?.state === 'retrying') this.addOldest(run.started)
    if (state === 'ready') this.addOldest(due)
  }

  addOldest(since: Millis): void {
    this.oldest = Math.min(this.oldest ?? Infinity, since)
  }
}
