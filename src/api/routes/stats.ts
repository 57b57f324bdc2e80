// The figures of a window: how much came, how long it took, how much failed, how much waits.
import { z } from 'zod'
import type { StatsAsked } from '../../operate/stats.ts'
import { route, type ApiRoute } from '../route.ts'
import { moment, NOTHING } from '../schemas.ts'

const FIGURES = {
  received: z.int().meta({ description: 'Events stored in the window.' }),
  receivedPerMinute: z.number(),
  done: z.int().meta({ description: 'Of events in flows: one that two flows got ends twice.' }),
  dropped: z.int(),
  dead: z.int().meta({ description: 'And have not recovered since.' }),
  deadPerDay: z.number(),
  failing: z.int().meta({
    description:
      'Wait for another attempt right now. By source and type: began to fail in the window, have not ended since.',
  }),
  failureRate: z.number().min(0).max(1).optional().meta({
    description: 'Those that are dead or failing, of these and all that ended; not there when nothing ended.',
  }),
  meanMs: z.number().optional().meta({ description: 'From arrival to done.' }),
  p95Ms: z.number().optional().meta({ description: 'From arrival to done, true to a tenth.' }),
}

const DEPTH = {
  depth: z.int().meta({ description: 'Events that wait, and those that failed and wait for their next attempt.' }),
  oldest: moment.optional().meta({ description: 'Since when the work that waits longest has been due.' }),
}

const GROUP = z.strictObject({
  source: z.string().optional(),
  type: z.string().optional(),
  flow: z.string().optional(),
  ...FIGURES,
  depth: DEPTH.depth.optional(),
  oldest: DEPTH.oldest,
})

const ASKED = z.strictObject({
  window: z
    .string()
    .regex(/^\d{1,6}(?:\.\d{1,3})?(?:ms|s|m|h|d)$/, 'it is a length of time from 1m to 7d')
    .default('24h')
    .meta({ description: 'From 1m to 7d.', example: '24h' }),
  by: z
    .enum(['source', 'type', 'source,type', 'flow'])
    .exactOptional()
    .meta({ description: 'How to group; the sum of all is there in any case.' }),
})

export const stats: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/stats',
    name: 'stats',
    tag: 'stats',
    summary: 'Figures over a window, of all processes; what waits is of now, and not kept by source and type.',
    role: 'read',
    params: NOTHING,
    query: ASKED,
    body: NOTHING,
    answer: z.strictObject({
      now: moment,
      from: moment.meta({ description: 'Where the window really begins.' }),
      total: z.strictObject({ ...FIGURES, ...DEPTH }),
      depthIsWhole: z.boolean().meta({ description: 'False: depth is a lower bound.' }),
      groups: z.array(GROUP),
    }),
    handle: async (app, { query }) => {
      const { groups, ...answer } = await app.stats(query as StatsAsked)
      return { ...answer, groups: [...groups] }
    },
  }),
]
