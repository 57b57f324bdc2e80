// Routes of limits: their state, and how an operator pauses one. The limit of a key is named `<limit>/<key>`.
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { LimitView } from '../../admin/limits.ts'
import { orSuggest, route, withTag, type ApiRoute, type ApiTarget } from '../route.ts'
import { duration, laneId, PAGE_QUERY, pageOf, reason, timestamp } from '../schemas.ts'

const limitName = z.string().min(1).max(17_000)
const LIMIT_PARAMS = z.strictObject({ name: limitName.meta({ description: 'Write a slash in the name as %2F.' }) })

const PAUSE = z.strictObject({
  at: timestamp,
  ms: z.number(),
  cause: z.enum(['response', 'code', 'operator']),
  status: z.int().optional(),
  url: z.string().optional().meta({ description: 'Without its query.' }),
  flow: z.string().optional().meta({ description: 'The flow whose run got the response.' }),
  by: z.string().optional(),
})

const LIMIT = z.strictObject({
  name: z.string(),
  declared: z
    .boolean()
    .meta({ description: 'Whether this app declares the limit. Otherwise it belongs, or belonged, to another app.' }),
  epoch: z.int().meta({ description: 'Increases with every pause; 0 until the first use.' }),
  pausedUntil: timestamp.optional(),
  rate: z.int().optional().meta({ description: 'The rate that this app declares, with `per` and `burst`.' }),
  per: z.number().optional().meta({ description: 'In milliseconds.' }),
  burst: z.int().optional().meta({ description: '0 means an exact window.' }),
  stretch: z.number().optional().meta({
    description: 'The factor by which `per` is longer now because the other side refused calls. It recovers by itself.',
  }),
  busyUntil: timestamp.optional().meta({ description: 'The latest slot that a waiting caller has reserved.' }),
  used: z.number().min(0).max(1).optional().meta({
    description: 'The share of the rate that this process used over the last minute, or over `per` if that is longer.',
  }),
  flows: z.array(z.string()).meta({
    description:
      'The flows that called under it in the last 15 minutes in this process, the busiest first, and those that wait for it.',
  }),
  waiting: z
    .int()
    .meta({ description: 'Lanes whose run was deferred by the limit, or waits for a slot in this process.' }),
  lastSlot: timestamp.optional().meta({ description: 'The last slot that was given or promised.' }),
  paused: PAUSE.optional().meta({ description: 'Why it is paused, if it was paused in this process.' }),
})

const USAGE = z.strictObject({
  step: z.int(),
  from: timestamp.meta({ description: 'The start of the first step; the last one is the current one.' }),
  spenders: z
    .array(z.strictObject({ flow: z.string(), calls: z.array(z.int()).length(60), total: z.int() }))
    .meta({ description: 'The largest first. `flow` is empty for calls outside of runs.' }),
  pauses: z.array(PAUSE).max(20).meta({ description: 'The newest first.' }),
  slots: z
    .array(z.strictObject({ at: timestamp, flow: z.string(), key: z.string(), lane: laneId }))
    .max(20)
    .meta({ description: 'Who gets the next slots.' }),
})

export const limits: readonly ApiRoute[] = withTag('limits', [
  route({
    method: 'GET',
    path: '/v1/limits',
    name: 'listLimits',
    summary: 'Lists the declared limits by name, and up to 1,000 limits of keys in use.',
    query: z.strictObject({
      ...PAGE_QUERY,
      cursor: z.string().max(200).default('').meta({ description: 'The `next` of the previous page.' }),
    }),
    response: pageOf(LIMIT),
    handle: async (app, { query: { cursor, limit } }) => {
      const { items } = await app.admin.limits.list('', Number.MAX_SAFE_INTEGER)
      const placed = items
        .map((one) => ({ one, position: toCursor(one.name) }))
        .filter(({ position }) => position > cursor)
      const page = placed.toSorted((a, b) => (a.position < b.position ? -1 : 1)).slice(0, limit)
      const next = placed.length > limit ? page.at(-1)?.position : undefined
      return { items: page.map(({ one }) => one), next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/limits/{name}',
    name: 'showLimit',
    summary: 'Returns a limit: its rate, whether it is paused or slowed down, and until when callers wait for it.',
    params: LIMIT_PARAMS,
    response: LIMIT,
    handle: (app, { params }) => readLimitAfter(app, params.name, 'ok'),
  }),
  route({
    method: 'GET',
    path: '/v1/limits/{name}/usage',
    name: 'showLimitUsage',
    summary:
      'Returns who spent a limit over the last 15 minutes in this process, why it was paused, and who waits for it.',
    params: LIMIT_PARAMS,
    response: USAGE,
    handle: async (app, { params }) => orSuggestLimit(app, await app.admin.limits.usage(params.name), params.name),
  }),
  route({
    method: 'POST',
    path: '/v1/limits/{name}/pause',
    name: 'pauseLimit',
    summary: 'Pauses a limit in every process: no call is made under it for this time.',
    params: LIMIT_PARAMS,
    body: z.strictObject({ for: duration, reason }),
    response: LIMIT,
    auditText: ({ params, body }) => `pause the limit ${params.name} for ${body.for}: ${body.reason}`,
    handle: async (app, { params, body, actor }) =>
      readLimitAfter(app, params.name, await app.admin.limits.pause(params.name, { for: body.for, by: actor })),
  }),
  route({
    method: 'POST',
    path: '/v1/limits/{name}/resume',
    name: 'resumeLimit',
    summary: 'Ends the pause of a limit, and the reduced rate that follows a pause.',
    params: LIMIT_PARAMS,
    response: LIMIT,
    auditText: ({ params }) => `resume the limit ${params.name}`,
    handle: async (app, { params }) => readLimitAfter(app, params.name, await app.admin.limits.resume(params.name)),
  }),
])

const CURSOR_NAME_LENGTH = 100

/** A name may contain a key of 16 KB, which is too long for a URL, so the cursor of a long name ends in a hash. */
function toCursor(limit: string): string {
  return limit.length <= CURSOR_NAME_LENGTH
    ? limit
    : `${limit.slice(0, CURSOR_NAME_LENGTH).toWellFormed()}${hash('sha256', limit, 'base64url')}`
}

async function readLimitAfter(app: ApiTarget, name: string, did: 'ok' | 'missing'): Promise<LimitView> {
  return orSuggestLimit(app, did === 'missing' ? undefined : await app.admin.limits.show(name), name)
}

function orSuggestLimit<T>(app: ApiTarget, found: T, limit: string): Promise<Exclude<T, undefined | 'missing'>> {
  return orSuggest(found, 'limit', limit, async () =>
    (await app.admin.limits.list('', MAX_SUGGESTED)).items.map((one) => one.name),
  )
}

const MAX_SUGGESTED = 1_000
