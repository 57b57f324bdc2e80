// One scheduler step in the reference model: settle, then claim; a repeated request changes nothing (L12).
import type { Head, Settled, TurnCall } from '../../../src/store/contract/index.ts'
import { claim, headOf, type Claimed, type Granted } from './claim.ts'
import { settle } from './settle.ts'
import { isLive, type Model, type ModelLane } from './state.ts'

export type ModelTurn =
  | { readonly kind: 'stale' }
  | {
      readonly kind: 'repeated'
      readonly settled: readonly Settled[]
      readonly lanes: readonly ModelLane[]
      readonly heads: readonly Head[]
    }
  | {
      readonly kind: 'taken'
      readonly settled: readonly Settled[]
      readonly granted: readonly Granted[]
      readonly crashed: Claimed['crashed']
      readonly heads: readonly Head[]
    }

export function turn(model: Model, call: TurnCall): ModelTurn {
  const last = model.requests.get(call.process)
  const heads = (): Head[] => call.claim.map((one) => ({ flow: one.flow, due: headOf(model, one) }))
  if (last !== undefined && call.request < last.request) return { kind: 'stale' }
  if (last !== undefined && call.request === last.request) {
    const holds = (lane: ModelLane, token: number): boolean =>
      lane.run !== undefined && lane.run.token === token && isLive(lane.run, model.now)
    const lanes = last.tokens.flatMap((token) => [...model.lanes.values()].filter((lane) => holds(lane, token)))
    return { kind: 'repeated', settled: last.settled, lanes, heads: heads() }
  }
  const settled = call.settle.map((one) => settle(model, one, call.routes))
  const claimed = call.claim.map((one) => claim(model, one))
  const granted = claimed.flatMap((one) => one.granted)
  return { kind: 'taken', settled, granted, crashed: claimed.flatMap((one) => one.crashed), heads: heads() }
}
