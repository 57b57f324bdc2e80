// The route of the store: its durability, size and clock.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { timestamp, NO_FIELDS } from '../schemas.ts'

export const store: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/store',
    name: 'showStore',
    tag: 'store',
    summary: 'Returns whether acknowledged events survive a crash, and why.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({
      durable: z.boolean(),
      because: z.string(),
      bytes: z.int(),
      now: timestamp.meta({ description: "The time of the store's clock." }),
    }),
    handle: (app) => app.admin.events.safety(),
  }),
]
