// The route of stats over a window: events received, durations, failures and backlog.
import { z } from 'zod'
import type { StatsOptions } from '../../admin/stats.ts'
import { route, type ApiRoute } from '../route.ts'
import { timestamp, NO_FIELDS } from '../schemas.ts'

const WINDOW_STATS = {
  received: z.int().meta({ description: 'Events stored in the window.' }),
  receivedPerMinute: z.number(),
  done: z.int().meta({ description: 'Counted per flow: an event in two flows ends twice.' }),
  dropped: z.int(),
  dead: z.int().meta({ description: 'Events in dead letters that have not recovered since.' }),
  deadPerDay: z.number(),
  failing: z.int().meta({
    description:
      'Events that wait for another attempt right now. By source and type: events that first failed in the window and have not ended since.',
  }),
  failureRate: z.number().min(0).max(1).optional().meta({
    description: 'The share of dead and failing events among these and all ended events. Missing if no event ended.',
  }),
  meanMs: z.number().optional().meta({ description: 'From arrival to done.' }),
  p95Ms: z.number().optional().meta({ description: 'From arrival to done, accurate to a tenth.' }),
}

const DEPTH = {
  depth: z.int().meta({ description: 'Waiting events, and failed events that wait for their next attempt.' }),
  oldest: timestamp.optional().meta({ description: 'The time since which the oldest work is due.' }),
}

const GROUP = z.strictObject({
  source: z.string().optional(),
  type: z.string().optional(),
  flow: z.string().optional(),
  ...WINDOW_STATS,
  depth: DEPTH.depth.optional(),
  oldest: DEPTH.oldest,
})

const STATS_QUERY = z.strictObject({
  window: z
    .string()
    .regex(/^\d{1,6}(?:\.\d{1,3})?(?:ms|s|m|h|d)$/, 'it must be a duration from 1m to 7d')
    .default('24h')
    .meta({ description: 'From 1m to 7d.', example: '24h' }),
  by: z
    .enum(['source', 'type', 'source,type', 'flow'])
    .exactOptional()
    .meta({ description: 'How to group. The total is always included.' }),
})

export const stats: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/stats',
    name: 'stats',
    tag: 'stats',
    summary:
      'Returns stats over a window, of all processes. The backlog is current and has no breakdown by source and type.',
    role: 'read',
    params: NO_FIELDS,
    query: STATS_QUERY,
    body: NO_FIELDS,
    response: z.strictObject({
      now: timestamp,
      from: timestamp.meta({ description: 'The actual start of the window.' }),
      total: z.strictObject({ ...WINDOW_STATS, ...DEPTH }),
      depthIsWhole: z.boolean().meta({ description: 'If false, `depth` is a lower bound.' }),
      groups: z.array(GROUP),
    }),
    handle: async (app, { query }) => {
      const { groups, ...answer } = await app.admin.stats(query as StatsOptions)
      return { ...answer, groups: [...groups] }
    },
  }),
]
