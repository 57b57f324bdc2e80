// `describeWork` collects what `explain` and the lists of lanes must know about the processes that work on the store.
import type { FlowRegistry } from '../flow/registry.ts'
import type { Flow } from '../model/flow.ts'
import type { ExplainDependencies } from '../observe/explain/explain.ts'
import type { Worker } from './worker.ts'

interface WorkSources {
  readonly store: ExplainDependencies['store']
  readonly registry: FlowRegistry
  readonly flows: ReadonlyMap<string, Flow>
  /** Undefined if this process has not started. */
  readonly worker: Worker | undefined
}

export async function describeWork({ store, registry, flows, worker }: WorkSources): Promise<ExplainDependencies> {
  // A started process reads this every 20 s.
  if (worker === undefined) await registry.refresh()
  return {
    store,
    flows,
    isServed: (name) => (worker !== undefined && flows.has(name)) || registry.isServed(name),
    findSlotWait: (run) => worker?.findSlotWait(run),
    isProcessFull: () => worker?.isFull() === true,
    claimError: (name) => worker?.claimError(name),
    hasLingeringHandler: (lane) => worker?.hasLingeringHandler(lane) === true,
  }
}
