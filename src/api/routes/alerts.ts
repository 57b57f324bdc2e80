// The route of the app's alerts and their states.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { timestamp, NO_FIELDS } from '../schemas.ts'

const ALERT = z.strictObject({
  name: z.string(),
  state: z.enum(['clear', 'pending', 'raised', 'easing']).meta({
    description:
      '`pending`: the condition holds, but not yet for long enough; `easing`: it has ended, but not yet for long enough.',
  }),
  since: timestamp.optional(),
  text: z.string(),
  broken: z.string().optional().meta({
    description: 'The error that the condition threw at its last evaluation; the state is then the one before.',
  }),
})

export const alerts: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/alerts',
    name: 'listAlerts',
    tag: 'alerts',
    summary: 'Lists the declared alerts with their states.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ items: z.array(ALERT) }),
    handle: async (app) => ({ items: [...(await app.admin.alerts.list())] }),
  }),
]
