// The app that the demo shows, as anybody would write it: each user is a lane, and every API call is under one shared limit.
import { Sluice, type Clock, type Store } from 'sluice'
import type { Chance } from '../kit/chance.ts'
import { standardWebhooks } from 'sluice/sources'
import { API, FLOW, LEASE, RETRY, TASKS } from './flow.ts'
import type { Tell } from './life.ts'
import { rankUser } from './rank-user.ts'
import { SECRET } from './webhooks.ts'
import { Witness } from './witness.ts'

export interface AppParts {
  readonly store: Store
  readonly clock: Clock
  readonly luck: Chance
  readonly tell: Tell
}

interface RankingApp {
  readonly app: Sluice
  readonly witness: Witness
}

/** All users of the demo are at one address. */
const EVERYBODY = { rate: 100_000, per: '1m' } as const

export function rankingApp({ store, clock, luck, tell }: AppParts): RankingApp {
  // Without a shutdownTimeout, the demo ends at once, and the user sees the summary.
  const app = new Sluice({
    store,
    clock,
    shutdownTimeout: 0,
    lease: LEASE,
    heartbeat: LEASE / 3,
    addressRate: EVERYBODY,
    // So that `sluice` and curl can look at it from this machine.
    admin: { open: 'loopback' },
    log: false,
  })
  const api = app.limit(API.name, { rate: API.rate, per: API.per })
  const witness = new Witness(app, { store, clock, tell })
  app.source(TASKS, standardWebhooks({ secret: SECRET, subject: 'data.assignee' }))
  app.flow(FLOW, {
    on: `${TASKS}/task.edited`,
    key: (event) => event.subject,
    // Short enough that one sees windows close within a minute.
    window: { quiet: '2s', max: '10s' },
    whileRunning: 'requeue',
    // Under a hard cap on calls, a second run at once would only wait beside the first.
    concurrency: 1,
    retry: RETRY,
    run: async (run) => {
      await witness.begun(run)
      return rankUser(run, { api, clock, luck, tell })
    },
  })
  return { app, witness }
}
