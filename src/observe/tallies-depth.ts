// How much there is to do right now, flow by flow: a look at the lanes themselves, the oldest first, up to a bound.
import type { Millis } from '../clock.ts'
import { stateOf, type LaneState } from '../model/lane-states.ts'
import type { FindReply, Store } from '../store/contract/index.ts'

/** Of one flow, or of all. */
export interface Depth {
  /** Events that wait for their window, their turn, another call, or the end of a hold. */
  readonly waiting: number
  /** Events whose run has failed and waits for its next attempt. */
  readonly failing: number
  /** Since when the work that waits longest has been due: its deadline, or the begin of its first attempt. */
  readonly oldest: Millis | undefined
  readonly lanes: Readonly<Partial<Record<LaneState, number>>>
}

export interface Depths {
  readonly flows: ReadonlyMap<string, Depth>
  readonly total: Depth
  /** False: there are more lanes than were looked at, and figures are lower bounds. */
  readonly isWhole: boolean
}

const PAGE = 1_000
const PAGES_MAX = 10
/** What waits there for its time is not behind with anything. */
const OURS: ReadonlySet<string> = new Set(['sluice.delayed', 'sluice.replay'])

type Found = FindReply<'lanes'>

export async function depthsOf(store: Store): Promise<Depths> {
  const flows = new Map<string, Sum>()
  const total = new Sum()
  const sumsOf = (flow: string): readonly Sum[] => {
    if (OURS.has(flow)) return []
    const known = flows.get(flow) ?? new Sum()
    flows.set(flow, known)
    return [known, total]
  }
  const stats = await store.stats()
  // The heads of all lines are known, however long these are.
  for (const { flow, due = Infinity } of stats.flows) {
    for (const sum of sumsOf(flow)) if (due <= stats.now) sum.seen(due)
  }
  let cursor: string | undefined = ''
  for (let pages = 0; cursor !== undefined && pages < PAGES_MAX; pages++) {
    const page: Found = await store.find({ kind: 'lanes', filter: {}, cursor, n: PAGE, oldestFirst: true })
    for (const lane of page.items) for (const sum of sumsOf(lane.flow)) sum.add(lane, stateOf(lane, page.now))
    cursor = page.next
  }
  return { flows, total, isWhole: cursor === undefined }
}

class Sum implements Depth {
  waiting = 0
  failing = 0
  oldest: Millis | undefined
  readonly lanes: Partial<Record<LaneState, number>> = {}

  add(lane: Found['items'][number], state: LaneState): void {
    const { run } = lane
    this.lanes[state] = (this.lanes[state] ?? 0) + 1
    this.waiting += lane.waiting + lane.replays
    if (run?.state === 'retrying') {
      this.failing += run.events
      this.seen(run.started)
    } else if (run !== undefined && state !== 'running') this.waiting += run.events
    if (state === 'ready') this.seen(lane.due)
  }

  seen(since: Millis): void {
    this.oldest = Math.min(this.oldest ?? Infinity, since)
  }
}
