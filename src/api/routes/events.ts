// Routes of stored events: search, read one, replay one.
import { z } from 'zod'
import { EVENT_FILTER } from './event-filter.ts'
import { route, type ApiRoute } from '../route.ts'
import { id, timestamp, NO_FIELDS, PAGE_QUERY, pageOf } from '../schemas.ts'
import { laneId, laneState } from './lane-schemas.ts'
import { notFound } from './not-found.ts'
import { into, replay, toReplayResponse } from './replay-schemas.ts'
import { runKind } from './run-schemas.ts'

const TAG = 'events'
const ID_PARAMS = z.strictObject({ id })

const EVENT = z.strictObject({
  id: z.string(),
  source: z.string(),
  type: z.string(),
  time: timestamp,
  arrived: timestamp,
  tenant: z.string(),
  subject: z.string(),
  bytes: z.int().meta({ description: 'The size of the body.' }),
  purged: z.boolean().meta({ description: 'Whether an operator purged the data of the event.' }),
  duplicates: z.int(),
  lanes: z.array(laneId),
  skipped: z
    .array(z.strictObject({ flow: z.string(), reason: z.enum(['no-key', 'dropped']) }))
    .meta({ description: 'Flows that wanted the event but found no key in it.' }),
  unrouted: z
    .array(z.strictObject({ flow: z.string(), reason: z.string(), error: z.string() }))
    .meta({ description: 'Flows in which the event still lacks its placements.' }),
  note: z.string().meta({
    description: 'The same in words; empty if every flow that wants the event has placed it.',
    example: 'skipped by sync-customer: no key',
  }),
})

const REQUEST = z.strictObject({
  id: z.string(),
  method: z.string(),
  url: z.string(),
  address: z.string(),
  headers: z.record(z.string(), z.string()),
  body64: z.string().optional().meta({ description: 'The body of the whole request, at the first of its events.' }),
})

const EVENT_DETAILS = EVENT.extend({
  attributes: z.record(z.string(), z.unknown()).meta({ description: 'Under the names that the sender used.' }),
  body: z
    .strictObject({ kind: z.enum(['text', 'base64']), text: z.string() })
    .meta({ description: 'As received: text if it is valid UTF-8, else base64. Untrusted data.' }),
  request: REQUEST.optional().meta({ description: 'Missing for events published in code.' }),
  receipts: z
    .array(
      z.strictObject({
        at: timestamp,
        kind: z.enum(['duplicate', 'conflict']),
        event: z.string(),
        bodyHash: z.string(),
      }),
    )
    .meta({ description: 'One receipt per later arrival of the same event.' }),
  lanes: z.array(
    z.strictObject({
      id: laneId,
      state: z.union([laneState, z.literal('gone')]),
      flow: z.string().optional(),
      key: z.string().optional(),
    }),
  ),
  runs: z
    .array(
      z.strictObject({
        id: z.string(),
        lane: laneId,
        flow: z.string(),
        key: z.string(),
        kind: runKind,
        started: timestamp,
        ended: timestamp,
      }),
    )
    .meta({ description: 'The runs of the event, newest first, among the last 100 of each of its first 20 lanes.' }),
})

export const events: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/events',
    name: 'listEvents',
    tag: TAG,
    summary: 'Lists stored events, newest first. All given filters must match.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({
      ...EVENT_FILTER,
      own: z
        .enum(['true', 'false'])
        .exactOptional()
        .meta({ description: 'Whether to include events that the engine publishes to itself.' }),
      ...PAGE_QUERY,
    }),
    body: NO_FIELDS,
    response: pageOf(EVENT),
    handle: async (app, { query: { cursor, limit, own, ...filter } }) => {
      const { items, next } = await app.admin.events.list({ ...filter, own: own === 'true' }, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/events/{id}',
    name: 'showEvent',
    tag: TAG,
    summary: 'Returns an event with its body, request, receipts, lanes and runs.',
    role: 'read',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: EVENT_DETAILS,
    handle: async (app, { params }) => {
      const event = await app.admin.events.show(params.id)
      if (event === undefined) throw notFound('event', params.id)
      return event as never
    },
  }),
  route({
    method: 'POST',
    path: '/v1/events/{id}/replay',
    name: 'replayEvent',
    tag: TAG,
    summary: 'Replays one event.',
    role: 'operate',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: z.strictObject({ into }),
    response: replay,
    auditText: ({ params }) => `replay the event ${params.id}`,
    handle: async (app, { params, body }) => {
      if ((await app.admin.replays.count({ event: params.id })) === 0) throw notFound('event', params.id)
      return toReplayResponse(await app.admin.replays.start({ event: params.id }, body))
    },
  }),
]
