// People name a lane by flow and key; a store by one hash of both.
import { laneId, ownLaneId, type LaneId } from '../model/identity.ts'
import type { Flow } from '../model/flow.ts'

/** In a flow without `key` the key of a lane is the id of its event. */
export function laneOf(flows: ReadonlyMap<string, Flow>, flow: string, key: string): LaneId {
  const known = flows.get(flow)
  return known !== undefined && known.keysOf === undefined ? ownLaneId(flow, key) : laneId(flow, key)
}

/** How the lane of a flow that is not declared here got its name is not known: both that it may have. */
export function lanesOf(flows: ReadonlyMap<string, Flow>, flow: string, key: string): readonly LaneId[] {
  // Both are the same for a key that does not begin as an id does.
  return flows.has(flow) ? [laneOf(flows, flow, key)] : [...new Set([laneId(flow, key), ownLaneId(flow, key)])]
}
