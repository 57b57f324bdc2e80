// Alerts as they stand.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { moment, NOTHING } from '../schemas.ts'

const ALERT = z.strictObject({
  name: z.string(),
  state: z.enum(['clear', 'pending', 'raised', 'easing']).meta({
    description: '`pending`: it is so, but not yet for long enough; `easing`: over, but not yet for long enough.',
  }),
  since: moment.optional(),
  text: z.string(),
  broken: z.string().optional().meta({
    description: 'What its condition threw when it was last asked; how it stands is then of the time before.',
  }),
})

export const alerts: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/alerts',
    name: 'listAlerts',
    tag: 'alerts',
    summary: 'All that the app declares, as they stand.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(ALERT) }),
    handle: async (app) => ({ items: [...(await app.alerts.list())] }),
  }),
]
