// Routes of the state of the whole app, which the dashboard polls.
import { z } from 'zod'
import { route, withTag, type ApiRoute } from '../route.ts'
import { flowPause, laneCounts, timestamp } from '../schemas.ts'

const count = z.int().min(0)

const FLOW_STATUS = z.strictObject({
  flow: z.string(),
  delivery: z.boolean(),
  declared: z.boolean().meta({ description: 'Whether this app declares the flow. Another process may serve it.' }),
  waiting: count.meta({ description: 'This and the following fields count lanes.' }),
  ready: count,
  running: count,
  retrying: count.meta({ description: 'Lanes whose run waits for its next attempt, was snoozed, or has lapsed.' }),
  limited: count.meta({ description: 'Lanes whose run was deferred by a limit.' }),
  blocked: count,
  held: count,
  events: count.meta({ description: 'Waiting events.' }),
  oldestDue: timestamp.optional(),
  paused: flowPause.optional(),
  window: z.string().optional().meta({ example: 'quiet 10 s, max 1 minute' }),
  concurrency: z.int().optional(),
})

const STATUS = z.strictObject({
  now: timestamp,
  verdict: z.enum(['idle', 'keeping-up', 'falling-behind', 'stalled']),
  reason: z.enum(['paused', 'unserved', 'no-slots', 'unknown']).optional().meta({ description: 'Why it is stalled.' }),
  sentence: z.string(),
  oldestDue: timestamp.optional().meta({ description: 'The first deadline of the lanes that are in line.' }),
  lastRunBegan: timestamp.optional(),
  lastEvent: timestamp.optional(),
  lanes: z.strictObject({
    total: count,
    exact: z.boolean().meta({ description: 'False above 20,000 lanes: the counts are then of those that were read.' }),
    events: count,
    byState: laneCounts,
  }),
  flows: z.array(FLOW_STATUS),
  deadLetters: count,
  unrouted: count,
  endpoints: z.strictObject({
    up: count,
    degraded: count,
    down: count,
    paused: count,
    disabled: count,
    unproven: count,
  }),
  limits: z.strictObject({ free: count, slowed: count, paused: count }),
  alerts: z.strictObject({ raised: count, pending: count }),
  replays: z.strictObject({ running: count }),
  refused: count.meta({ description: 'Requests that sources refused within the last hour; up to 50 of each source.' }),
})

const SECONDS = z.array(count).length(60)

const PULSE = z.strictObject({
  now: timestamp,
  step: z.literal(1_000),
  past: z
    .strictObject({ from: timestamp, ended: SECONDS, failed: SECONDS })
    .meta({ description: 'The attempts that ended in each of the last 60 seconds, as far as the server knows.' }),
  ahead: z
    .strictObject({ from: timestamp, due: SECONDS })
    .meta({ description: 'The lanes that come due in this second and the next 59.' }),
  flows: z.record(z.string(), z.strictObject({ ended: SECONDS, failed: SECONDS, due: SECONDS })),
})

export const status: readonly ApiRoute[] = withTag('stats', [
  route({
    method: 'GET',
    path: '/v1/status',
    name: 'status',
    summary:
      'Returns whether the app keeps up, what waits where, and what needs a person. Computed about once a second.',
    response: STATUS,
    handle: (app) => app.admin.status(),
  }),
  route({
    method: 'GET',
    path: '/v1/pulse',
    name: 'pulse',
    summary:
      'Returns the attempts that ended in each of the last 60 seconds, and the lanes that come due in the next 60.',
    response: PULSE,
    handle: (app) => app.admin.pulse(),
  }),
])
