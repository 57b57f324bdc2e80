// Operators name a lane by flow and key; a store identifies it by one hash of both.
import { laneId, keylessLaneId, type LaneId } from '../model/identity.ts'
import type { Flow } from '../model/flow.ts'

/** `resolveLaneId` returns the id of a lane. In a flow without `key`, the key of a lane is the id of its event. */
export function resolveLaneId(flows: ReadonlyMap<string, Flow>, flow: string, key: string): LaneId {
  const known = flows.get(flow)
  return known !== undefined && known.selectKeys === undefined ? keylessLaneId(flow, key) : laneId(flow, key)
}

/**
 * `possibleLaneIds` returns both possible ids if this app does not declare the flow, because it cannot know whether
 * the flow has a `key`.
 */
export function possibleLaneIds(flows: ReadonlyMap<string, Flow>, flow: string, key: string): readonly LaneId[] {
  // Both ids are equal for a key that does not start like an event id.
  return flows.has(flow)
    ? [resolveLaneId(flows, flow, key)]
    : [...new Set([laneId(flow, key), keylessLaneId(flow, key)])]
}
