// The route that purges everything of one key, one tenant or one event at once.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { id, laneKey, name, NO_FIELDS } from '../schemas.ts'

export const purge: readonly ApiRoute[] = [
  route({
    method: 'POST',
    path: '/v1/purge',
    name: 'purge',
    tag: 'purge',
    summary: 'Removes events with their requests, dead letters and runs. This cannot be undone.',
    role: 'operate',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: z.union([
      z.strictObject({ flow: name, key: laneKey }),
      z.strictObject({ tenant: z.string().min(1).max(1_024) }),
      z.strictObject({ event: id }),
    ]),
    response: z
      .strictObject({ events: z.int(), letters: z.int(), runs: z.int() })
      .meta({ description: 'How many were removed.' }),
    auditText: ({ body }) => `purge ${JSON.stringify(body)}`,
    handle: (app, { body }) => app.admin.purge(body),
  }),
]
