// Shared by the tests of explain: both embedded stores, a flow, and parts that return nothing by default.
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Flow } from '../../src/model/flow.ts'
import { explain, type ExplainDependencies, type Explanation } from '../../src/observe/explain/explain.ts'
import type { Harness } from '../conformance/harness.ts'
import { ConformanceStage } from '../conformance/stage.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { ownFolder } from '../temporary-folder.ts'

const clock = (): VirtualClock => new VirtualClock()
const HARNESSES: Readonly<Record<'memory' | 'sqlite', Harness>> = {
  memory: { name: 'memory', clock, fresh: (its) => openMemoryStore({ clock: its }) },
  sqlite: {
    name: 'sqlite',
    clock,
    fresh: async (its) => openSqliteStore({ file: join(ownFolder(), 'events.db'), clock: its }),
  },
}
export const STORES = ['memory', 'sqlite'] as const

export async function stageOn(store: (typeof STORES)[number]): Promise<ConformanceStage> {
  const stage = await ConformanceStage.open(HARNESSES[store])
  onTestFinished(() => stage.close())
  return stage
}

function flowOf(words: Partial<Flow> = {}): Flow {
  return {
    name: 'flow',
    globs: ['shop/order.*'],
    definitions: [],
    matches: () => true,
    selectKeys: () => 'k',
    computeWindow: () => ({ quiet: 0, max: 0, maxEvents: 1_000, maxBytes: 4_000_000, jitter: 0, leading: false }),
    share: undefined,
    concurrency: 3,
    take: 'all',
    maxEvents: 1_000,
    maxBytes: 4_000_000,
    whileRunning: () => 'window',
    rememberFor: () => 0,
    isInternal: false,
    isDelivery: false,
    timeout: 300_000,
    retryDelay: () => 1_000,
    maxAttempts: 4,
    onDead: 'continue',
    adaptiveBaseQuiet: undefined,
    retention: 0,
    maxLanesPerTenant: Infinity,
    run: () => undefined,
    ...words,
  }
}

type PartWords = Partial<ExplainDependencies> & { readonly flow?: Partial<Flow> }

export function partsOf(store: Store, { flow, ...words }: PartWords = {}): ExplainDependencies {
  return {
    store,
    flows: new Map([['flow', flowOf(flow)]]),
    isServed: () => true,
    findSlotWait: () => undefined,
    isProcessFull: () => false,
    claimError: () => undefined,
    hasLingeringHandler: () => false,
    ...words,
  }
}

export async function explanationOf(stage: ConformanceStage, words: PartWords = {}, key = 'k'): Promise<Explanation> {
  return explain(partsOf(stage.store, words), 'flow', key)
}
