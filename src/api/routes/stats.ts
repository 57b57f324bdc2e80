// Routes of the state of the app: stats over a window, alerts, and the store.
import { z } from 'zod'
import type { StatsOptions } from '../../admin/stats.ts'
import { route, withTag, type ApiRoute } from '../route.ts'
import { duration, timestamp } from '../schemas.ts'

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

const count = z.int().min(0)

const POINT = z.strictObject({
  at: timestamp,
  received: count,
  done: count,
  dropped: count,
  dead: count,
  failing: count.meta({ description: 'Events that failed for the first time.' }),
  runs: count.optional().meta({ description: 'Attempts that ended. Missing by source and type, like `failedRuns`.' }),
  failedRuns: count.optional(),
  lateMs: z
    .number()
    .optional()
    .meta({ description: 'The longest delay in the step between the deadline of a lane and the start of its run.' }),
  meanMs: WINDOW_STATS.meanMs,
  p95Ms: WINDOW_STATS.p95Ms,
  waiting: count.optional().meta({ description: 'Waiting events at the end of the step, computed back from now.' }),
})
const SERIES = z.array(POINT).max(500)

const GROUP = z.strictObject({
  source: z.string().optional(),
  type: z.string().optional(),
  flow: z.string().optional(),
  ...WINDOW_STATS,
  depth: DEPTH.depth.optional(),
  oldest: DEPTH.oldest,
  series: SERIES.optional().meta({ description: 'With `step`: the same steps as in the series of the total.' }),
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
  step: duration.exactOptional().meta({
    description:
      'Adds a series with steps of whole minutes: at least 1m for a window up to 2h, 10m up to 24h, and 1h beyond; at most 500 steps.',
    example: '1m',
  }),
})

export const stats: readonly ApiRoute[] = withTag('stats', [
  route({
    method: 'GET',
    path: '/v1/stats',
    name: 'stats',
    summary:
      'Returns stats over a window, of all processes, with `step` also as a series. The backlog is current and has no breakdown by source and type.',
    query: STATS_QUERY,
    response: z.strictObject({
      now: timestamp,
      from: timestamp.meta({ description: 'The actual start of the window.' }),
      total: z.strictObject({ ...WINDOW_STATS, ...DEPTH }),
      depthIsWhole: z.boolean().meta({ description: 'If false, `depth` is a lower bound.' }),
      groups: z.array(GROUP),
      series: z
        .strictObject({ step: z.int(), from: timestamp, points: SERIES })
        .optional()
        .meta({ description: 'With `step`: the series of the total. Its last step is the current one.' }),
    }),
    handle: (app, { query }) => app.admin.stats(query as StatsOptions),
  }),
])

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

export const alerts: readonly ApiRoute[] = withTag('alerts', [
  route({
    method: 'GET',
    path: '/v1/alerts',
    name: 'listAlerts',
    summary: 'Lists the declared alerts with their states.',
    response: z.strictObject({ items: z.array(ALERT) }),
    handle: async (app) => ({ items: await app.admin.alerts.list() }),
  }),
])

export const store: readonly ApiRoute[] = withTag('store', [
  route({
    method: 'GET',
    path: '/v1/store',
    name: 'showStore',
    summary: 'Returns whether acknowledged events survive a crash, and why.',
    response: z.strictObject({
      durable: z.boolean(),
      because: z.string(),
      bytes: z.int(),
      now: timestamp.meta({ description: "The time of the store's clock." }),
    }),
    handle: (app) => app.admin.events.safety(),
  }),
])
