// `PendingSettlement` is a run's settlement that waits for the next call to the store.
import type { UnstoredPublish, LeasedRun, Settlement, SettleResult } from '../store/contract/index.ts'

/** `SettledListener` gets the result of a settlement and the published events that the store did not store. */
export type SettledListener = (settled: SettleResult, keptOut: readonly UnstoredPublish[]) => void

/** `PendingSettlement` is a class and not an object literal, for the garbage collector (decision 13). */
export class PendingSettlement {
  readonly settle: Settlement
  readonly onSettled: SettledListener
  /** The epoch of the routes that routed the published events. */
  readonly routesEpoch: number

  constructor(settle: Settlement, onSettled: SettledListener, routes: number) {
    this.settle = settle
    this.onSettled = onSettled
    this.routesEpoch = routes
  }
}

/** `createRelease` gives a run back: it is a second suspect, and another flow's claim in the same call returned the first. */
export function createRelease({ lane, token }: LeasedRun, state64: string): Settlement {
  const end = { whileRunning: 'window', keep: 0 } as const
  return { lane, token, outcome: { kind: 'released', after: 0, state64 }, attempt: undefined, publish: [], ...end }
}
