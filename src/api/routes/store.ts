// The store: whether what is acknowledged would survive a crash, how large it is, what time it is there.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { moment, NOTHING } from '../schemas.ts'

export const store: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/store',
    name: 'showStore',
    tag: 'store',
    summary: 'Whether what is acknowledged would survive a crash, and why.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({
      durable: z.boolean(),
      because: z.string(),
      bytes: z.int(),
      now: moment.meta({ description: "By the store's clock." }),
    }),
    handle: (app) => app.stored.safety(),
  }),
]
