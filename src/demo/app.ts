// The app that the demo shows, as anybody would write it: each user is a lane, and every API call is under one shared limit.
import { Sluice, type Clock, type Store } from '../index.ts'
import type { Chance } from './chance.ts'
import { API, FLOW, LEASE, RETRY } from './flow.ts'
import type { Tell } from './life.ts'
import { rankUser } from './rank-user.ts'
import { Witness } from './witness.ts'

export interface AppParts {
  readonly store: Store
  readonly clock: Clock
  readonly luck: Chance
  readonly tell: Tell
}

export function rankingApp({ store, clock, luck, tell }: AppParts): Sluice {
  // No grace: whoever stops the demo wants to see the summary now.
  const app = new Sluice({ store, clock, grace: 0, lease: LEASE, heartbeat: LEASE / 3, log: false })
  const api = app.limit(API.name, { rate: API.rate, per: API.per })
  const witness = new Witness(app, clock, tell)
  return app.flow(FLOW, {
    on: 'tasks/task.edited',
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
}
