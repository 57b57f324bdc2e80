// One scheduler step in the reference model: settle, then claim. A repeated request changes nothing (L12).
import type {
  ClaimRequest,
  FlowDeadline,
  SettleResult,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import { claim, headOf, type Claimed, type Granted } from './claim.ts'
import { settle, type ModelSettled } from './settle.ts'
import { isLive, type Model, type ModelLane } from './state.ts'

export type ModelTurn =
  | { readonly kind: 'stale' }
  | {
      readonly kind: 'repeated'
      readonly settled: readonly SettleResult[]
      readonly keptOut: SettleAndClaimReply['unstored']
      readonly lanes: readonly ModelLane[]
      readonly heads: readonly FlowDeadline[]
    }
  | {
      readonly kind: 'taken'
      readonly settled: readonly SettleResult[]
      readonly keptOut: SettleAndClaimReply['unstored']
      readonly granted: readonly Granted[]
      readonly crashed: Claimed['crashed']
      readonly heads: readonly FlowDeadline[]
    }

export function turn(model: Model, call: SettleAndClaimCall): ModelTurn {
  const last = model.requests.get(call.process)
  if (last !== undefined && call.request < last.request) return { kind: 'stale' }
  if (last !== undefined && call.request === last.request) {
    const holds = (lane: ModelLane, token: number): boolean =>
      lane.run !== undefined && lane.run.token === token && isLive(lane.run, model.now)
    const lanes = last.tokens.flatMap((token) => [...model.lanes.values()].filter((lane) => holds(lane, token)))
    const heads = call.claim.map((one) => ({ flow: one.flow, due: headOf(model, one) }))
    return { kind: 'repeated', settled: last.settled, keptOut: last.keptOut, lanes, heads }
  }
  const ended = call.settle.map((one) => settle(model, one, call.routes))
  const settled = ended.map((one) => one.settled)
  const claimed = call.claim.map((one) => claim(model, one))
  const due = (one: ClaimRequest, at: number): FlowDeadline['due'] =>
    one.maxRuns > 0 && claimed[at]?.granted.length === one.maxRuns ? model.now : headOf(model, one)
  const granted = claimed.flatMap((one) => one.granted)
  const crashed = claimed.flatMap((one) => one.crashed)
  const heads = call.claim.map((one, at) => ({ flow: one.flow, due: due(one, at) }))
  return { kind: 'taken', settled, keptOut: keptOut(ended), granted, crashed, heads }
}

/** Every published event that is not new in the store. */
function keptOut(ended: readonly ModelSettled[]): SettleAndClaimReply['unstored'] {
  const found: SettleAndClaimReply['unstored'][number][] = []
  for (const [at, { published }] of ended.entries()) {
    for (const [n, result] of published.entries()) {
      if (result.kind !== 'stored' && result.kind !== 'routes-old') found.push({ settle: at, publish: n, result })
    }
  }
  return found
}
