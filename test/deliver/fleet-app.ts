// The app of the fleet: two deliveries, one patient and one that gives up soon.
import { Sluice } from '../../src/index.ts'
import { DEADLINE, IMPATIENT, LEASE, MAX_EVENTS, PATIENT } from './fleet-plan.ts'

export interface FleetStore {
  readonly store: string
  readonly key: string
}

/** As the endpoints see it. */
export function workerName(pid: number | undefined): string {
  return `fleet/${pid}`
}

const WINDOW = { every: 20, maxEvents: MAX_EVENTS } as const

export function fleetApp({ store, key }: FleetStore): Sluice {
  const app = new Sluice({
    store,
    key,
    log: false,
    lease: LEASE,
    heartbeat: LEASE / 4,
    delivery: { allowLoopback: true, deadline: DEADLINE, userAgent: workerName(process.pid) },
  })
  app.delivery('versions', { on: 'version.*', window: WINDOW, retry: PATIENT })
  return app.delivery('audits', { on: 'audit.*', window: WINDOW, retry: IMPATIENT })
}
