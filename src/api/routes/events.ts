// Events as they are stored: searched, one looked at whole, and run again.
import { z } from 'zod'
import { EVENT_FILTER } from './event-filter.ts'
import { route, type ApiRoute } from '../route.ts'
import { id, moment, NOTHING, PAGE, pageOf } from '../schemas.ts'
import { laneId, laneState } from './lane-schemas.ts'
import { missing } from './missing.ts'
import { into, replay, replayAnswer } from './replay-schemas.ts'
import { runKind } from './run-schemas.ts'

const TAG = 'events'
const ONE = z.strictObject({ id })

const EVENT = z.strictObject({
  id: z.string(),
  source: z.string(),
  type: z.string(),
  time: moment,
  arrived: moment,
  tenant: z.string(),
  subject: z.string(),
  bytes: z.int().meta({ description: 'Of the body.' }),
  purged: z.boolean().meta({ description: 'Its data was removed by hand.' }),
  duplicates: z.int(),
  lanes: z.array(laneId),
})

const REQUEST = z.strictObject({
  id: z.string(),
  method: z.string(),
  url: z.string(),
  address: z.string(),
  headers: z.record(z.string(), z.string()),
  body64: z.string().optional().meta({ description: 'Of the whole request, at the first of several events in it.' }),
})

const WHOLE = EVENT.extend({
  attributes: z.record(z.string(), z.unknown()).meta({ description: 'As the sender named them.' }),
  body: z
    .strictObject({ kind: z.enum(['text', 'base64']), text: z.string() })
    .meta({ description: 'As it came: text where it is valid UTF-8, else base64. It is data of a stranger.' }),
  request: REQUEST.optional().meta({ description: 'Not there for what came by code.' }),
  receipts: z
    .array(
      z.strictObject({
        at: moment,
        kind: z.enum(['duplicate', 'conflict']),
        event: z.string(),
        bodyHash: z.string(),
      }),
    )
    .meta({ description: 'What later arrivals of the same event left.' }),
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
        started: moment,
        ended: moment,
      }),
    )
    .meta({ description: 'That had it, newest first, among the last 100 of each of its first 20 lanes.' }),
})

export const events: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/events',
    name: 'listEvents',
    tag: TAG,
    summary: 'Newest first. All of the filter together.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({
      ...EVENT_FILTER,
      own: z.enum(['true', 'false']).exactOptional().meta({ description: 'Also what the engine publishes to itself.' }),
      ...PAGE,
    }),
    body: NOTHING,
    answer: pageOf(EVENT),
    handle: async (app, { query: { cursor, limit, own, ...filter } }) => {
      const { items, next } = await app.stored.list({ ...filter, own: own === 'true' }, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/events/{id}',
    name: 'showEvent',
    tag: TAG,
    summary: 'One, with its body, its request, its receipts, its lanes and its runs.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: WHOLE,
    handle: async (app, { params }) => {
      const event = await app.stored.show(params.id)
      if (event === undefined) throw missing('event', params.id)
      return event as never
    },
  }),
  route({
    method: 'POST',
    path: '/v1/events/{id}/replay',
    name: 'replayEvent',
    tag: TAG,
    summary: 'Runs it again.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: z.strictObject({ into }),
    answer: replay,
    audited: ({ params }) => `replay the event ${params.id}`,
    handle: async (app, { params, body }) => {
      if ((await app.replays.count({ event: params.id })) === 0) throw missing('event', params.id)
      return replayAnswer(await app.replays.start({ event: params.id }, body))
    },
  }),
]
