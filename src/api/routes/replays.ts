// Routes of replays: count, start, watch and cancel.
import { z } from 'zod'
import { EVENT_FILTER } from './event-filter.ts'
import { route, type ApiRoute } from '../route.ts'
import { countResult, id, NO_FIELDS, steerResult } from '../schemas.ts'
import { duration } from './action-schemas.ts'
import { notFound } from './not-found.ts'
import { into, replay, toReplayResponse } from './replay-schemas.ts'

const TAG = 'replays'
const ID_PARAMS = z.strictObject({ id })

const FILTER = z.strictObject({
  ...EVENT_FILTER,
  event: id.exactOptional().meta({ description: 'Only this event.' }),
})

export const replays: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/replays',
    name: 'listReplays',
    tag: TAG,
    summary: 'Lists the last 1,000 replays, newest first.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ items: z.array(replay) }),
    handle: async (app) => ({ items: (await app.admin.replays.list()).map(toReplayResponse) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/count',
    name: 'countReplay',
    tag: TAG,
    summary: 'Counts the events that a replay with this filter would read.',
    role: 'read',
    params: NO_FIELDS,
    query: FILTER,
    body: NO_FIELDS,
    response: countResult,
    handle: async (app, { query }) => ({ count: await app.admin.replays.count(query) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/{id}',
    name: 'showReplay',
    tag: TAG,
    summary: 'Returns the progress of a replay.',
    role: 'read',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: replay,
    handle: async (app, { params }) => {
      const found = await app.admin.replays.show(params.id)
      if (found === undefined) throw notFound('replay', params.id)
      return toReplayResponse(found)
    },
  }),
  route({
    method: 'POST',
    path: '/v1/replays',
    name: 'startReplay',
    tag: TAG,
    summary: 'Starts a replay of stored events. Calls with the same id start it once.',
    role: 'operate',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: z.strictObject({
      filter: FILTER.meta({ description: 'The events to replay; {} matches every stored event.' }),
      id: z.string().min(1).max(200).exactOptional(),
      into,
      rate: z.int().min(1).max(1_000_000).exactOptional().meta({ description: 'Events per `per`. Default: 100.' }),
      per: duration.exactOptional().meta({ description: 'Default: one second.' }),
    }),
    response: replay,
    auditText: ({ body: { filter, id: given = '', into: flows = [] } }) =>
      `begin the replay ${given} of ${JSON.stringify(filter)} into ${flows.join(', ') || 'all flows'}`,
    handle: async (app, { body: { filter, ...options } }) =>
      toReplayResponse(await app.admin.replays.start(filter, options)),
  }),
  route({
    method: 'POST',
    path: '/v1/replays/{id}/cancel',
    name: 'cancelReplay',
    tag: TAG,
    summary: 'Cancels a replay. Events that it already placed still run.',
    role: 'operate',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: steerResult,
    auditText: ({ params }) => `cancel the replay ${params.id}`,
    handle: async (app, { params }) => {
      const result = await app.admin.replays.cancel(params.id)
      if (result === 'missing') throw notFound('replay', params.id)
      return { result }
    },
  }),
]
