// Purge: everything of one key, one tenant or one event is gone at once.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { id, laneKey, name, NOTHING } from '../schemas.ts'

export const purge: readonly ApiRoute[] = [
  route({
    method: 'POST',
    path: '/v1/purge',
    name: 'purge',
    tag: 'purge',
    summary: 'Removes events with their requests, dead letters and records of runs. It does not come back.',
    role: 'operate',
    params: NOTHING,
    query: NOTHING,
    body: z.union([
      z.strictObject({ flow: name, key: laneKey }),
      z.strictObject({ tenant: z.string().min(1).max(1_024) }),
      z.strictObject({ event: id }),
    ]),
    answer: z
      .strictObject({ events: z.int(), letters: z.int(), runs: z.int() })
      .meta({ description: 'How many were removed.' }),
    audited: ({ body }) => `purge ${JSON.stringify(body)}`,
    handle: (app, { body }) => app.purge(body),
  }),
]
