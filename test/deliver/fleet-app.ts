// The app of the fleet test: two deliveries, one with many retries and one with few.
import { Sluice } from '../../src/index.ts'
import { DEADLINE, IMPATIENT, LEASE, MAX_EVENTS, PATIENT } from './fleet-plan.ts'

export interface FleetStore {
  readonly store: string
  readonly key: string
}

/** The name of a worker as the endpoints see it. */
export function workerName(pid: number | undefined): string {
  return `fleet/${pid}`
}

const WINDOW = { every: 20, maxEvents: MAX_EVENTS } as const

export function fleetApp({ store, key }: FleetStore): Sluice {
  const app = new Sluice({
    store,
    encryptionKey: key,
    log: false,
    lease: LEASE,
    heartbeat: LEASE / 4,
    delivery: { allowLoopback: true, deadline: DEADLINE, userAgent: workerName(process.pid) },
  })
  app.delivery('versions', { on: 'version.*', window: WINDOW, retry: PATIENT })
  return app.delivery('audits', { on: 'audit.*', window: WINDOW, retry: IMPATIENT })
}
