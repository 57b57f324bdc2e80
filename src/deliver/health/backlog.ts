// `readBacklogs` reads the lanes of endpoints: what waits, when the next attempt is due, and which batches no process claims.
import type { Millis } from '../../clock.ts'
import { laneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'

export interface EndpointBacklog {
  /** Batches of lanes that are overdue because no process claims them. */
  stuck: number
  /** Events that wait, or whose batch waits for its next attempt. */
  waiting: number
  /** When the first of the failed batches is posted again. */
  nextTry: Millis | undefined
}

const STUCK_AFTER: Millis = 5 * 60_000
const PAGE = 1_000

/** `readBacklogs` returns the backlog per endpoint. For each delivery it reads at most one lane per endpoint. */
export async function readBacklogs(
  store: Store,
  names: readonly string[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, EndpointBacklog>> {
  const backlogs = new Map<string, EndpointBacklog>()
  const look = (lane: Lane, now: Millis): void => {
    const backlog = backlogs.get(lane.key) ?? { stuck: 0, waiting: 0, nextTry: undefined }
    backlogs.set(lane.key, backlog)
    const { run, hold } = lane
    if (hold === undefined && lane.due < now - STUCK_AFTER) backlog.stuck++
    backlog.waiting += lane.waiting + lane.replays + (run === undefined || run.state === 'running' ? 0 : run.events)
    if (run?.state === 'retrying') backlog.nextTry = Math.min(backlog.nextTry ?? Infinity, run.until)
  }
  for (const name of names) {
    if (ids.length > 1) await visitLanes(store, name, look)
    else for (const id of ids) await visitLane(store, laneId(name, id), look)
  }
  return backlogs
}

type LaneVisitor = (lane: Lane, now: Millis) => void

async function visitLane(store: Store, id: string, look: LaneVisitor): Promise<void> {
  const { item, now } = await store.get({ kind: 'lanes', id })
  if (item !== undefined) look(item, now)
}

async function visitLanes(store: Store, flow: string, look: LaneVisitor): Promise<void> {
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow }, cursor, n: PAGE })
    for (const lane of page.items) look(lane, page.now)
    cursor = page.next
  }
}
