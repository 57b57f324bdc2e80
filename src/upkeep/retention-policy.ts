// How long what is done is kept, as the store is told: by source for events, by flow for runs (L23).
import { NEVER, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { RetentionPolicy } from '../store/contract/index.ts'

export interface Keeping {
  readonly keepEvents: Readonly<Record<string, Millis>>
  readonly keepDead: Millis
  readonly keepBytes: number
}

export function retentionPolicy(flows: readonly Flow[], keeping: Keeping): RetentionPolicy {
  const { keepEvents, keepDead, keepBytes } = keeping
  const bounded = flows.filter((flow) => flow.maxLanesPerTenant < Infinity)
  return {
    events: keepEvents,
    runs: {
      '': keepEvents[''] ?? NEVER,
      ...Object.fromEntries(flows.map((flow) => [flow.name, Math.min(flow.retention, NEVER)])),
    },
    letters: keepDead,
    bytes: keepBytes,
    lanesPerTenant: Object.fromEntries(bounded.map((flow) => [flow.name, flow.maxLanesPerTenant])),
  }
}
