// The app of the demo, written as a user would write it: each user has a lane, and every API call is under one shared limit.
import { Sluice, type Clock, type Store } from 'sluice'
import type { Chance } from '../kit/chance.ts'
import { bearer, standardWebhooks } from 'sluice/sources'
import { API, BY_HAND, FLOW, LEASE, NEWS, RETRY, TASKS } from './flow.ts'
import type { Tell } from './life.ts'
import { rankUser } from './rank-user.ts'
import { BY_HAND_TOKEN, ENCRYPTION_KEY, SECRET } from './webhooks.ts'
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

/** All users of the demo share one address. */
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
    encryptionKey: ENCRYPTION_KEY,
    // The subscribers are on this machine.
    delivery: { allowLoopback: true },
    // Opens the dashboard and the API to this machine without a key.
    admin: { open: 'loopback' },
    log: false,
  })
  const api = app.limit(API.name, { rate: API.rate, per: API.per })
  const witness = new Witness(app, { store, clock, tell })
  app.source(TASKS, standardWebhooks({ secret: SECRET, subject: 'data.assignee' }))
  app.source(BY_HAND, bearer({ secret: BY_HAND_TOKEN, subject: 'user' }))
  app.flow(FLOW, {
    on: [`${TASKS}/task.edited`, `${BY_HAND}/*`],
    key: (event) => event.subject,
    debounce: { quiet: '2s', max: '10s' },
    whileRunning: 'requeue',
    // The limit allows no more calls with two runs than with one.
    concurrency: 1,
    retry: RETRY,
    run: async (run) => {
      await witness.begun(run)
      return rankUser(run, { api, clock, luck, tell })
    },
  })
  // A subscriber's backoff is short here, so that its breaker can be seen to open.
  app.delivery('rankings', { on: NEWS, batch: '2s', retry: ['2s', '5s', '10s'] })
  return { app, witness }
}
