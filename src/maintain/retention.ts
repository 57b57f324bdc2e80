// `toRetentionPolicy` builds the store's retention policy: per source for events and per flow for runs (L23).
import { NEVER, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { RetentionPolicy } from '../store/contract/index.ts'

export interface RetentionSettings {
  readonly keepEvents: Readonly<Record<string, Millis>>
  readonly keepDeadLetters: Millis
  readonly keepBytes: number
}

export function toRetentionPolicy(flows: readonly Flow[], keeping: RetentionSettings): RetentionPolicy {
  const { keepEvents, keepDeadLetters: keepDead, keepBytes } = keeping
  const bounded = flows.filter((flow) => flow.maxLanesPerTenant < Infinity)
  return {
    events: keepEvents,
    runs: {
      '': keepEvents[''] ?? NEVER,
      ...Object.fromEntries(flows.map((flow) => [flow.name, Math.min(flow.retention, NEVER)])),
    },
    deadLetters: keepDead,
    bytes: keepBytes,
    lanesPerTenant: Object.fromEntries(bounded.map((flow) => [flow.name, flow.maxLanesPerTenant])),
  }
}
