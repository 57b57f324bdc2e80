// Routes of replays: count, start, watch and cancel.
import { z } from 'zod'
import type { Replay } from '../../admin/replays.ts'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import {
  countResult,
  duration,
  EVENT_FILTER,
  id,
  laneId,
  name,
  steerResult,
  TIME_RANGE,
  timestamp,
} from '../schemas.ts'

/** The flows that get the events. */
export const into: z.ZodExactOptional<z.ZodArray<typeof name>> = z
  .array(name)
  .min(1)
  .max(100)
  .exactOptional()
  .meta({ description: 'The flows that get the events, if they want them. Default: all flows.' })

export const replay: z.ZodType = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'done', 'cancelled', 'stuck']),
  filter: z.strictObject({
    source: z.string().optional(),
    type: z.string().optional(),
    tenant: z.string().optional(),
    subject: z.string().optional(),
    lane: laneId.optional(),
    from: timestamp.optional(),
    to: timestamp.optional(),
  }),
  event: z.string().optional().meta({ description: 'Only this event.' }),
  into: z.array(z.string()),
  endpoint: z.string().optional().meta({ description: 'Only to this endpoint.' }),
  isHistory: z.boolean().optional().meta({ description: 'The history of a new endpoint, before its live events.' }),
  most: z.int().optional().meta({ description: 'Only this many of the events, the oldest ones.' }),
  rate: z.number(),
  per: z.number().meta({ description: 'Milliseconds.' }),
  started: timestamp,
  ended: timestamp.optional(),
  found: z.int().meta({ description: 'Events that match the filter, counted before the first was placed.' }),
  scanned: z.int(),
  reached: timestamp.optional().meta({ description: 'When the last event that was read had arrived.' }),
  placed: z.int(),
  skipped: z.int().meta({ description: 'Events that no flow wanted or found a key in.' }),
  gone: z.int(),
  failed: z.int(),
  error: z.string().meta({ description: 'The error of the last failure.' }),
})

/** `toReplayResponse` omits `withoutSource`, with which the engine excludes its own events from every replay. */
export function toReplayResponse(record: Replay): object {
  const { withoutSource: _omitted, ...filter } = record.filter
  return { ...record, filter }
}

const ID_PARAMS = z.strictObject({ id })

const FILTER = z.strictObject({
  ...EVENT_FILTER,
  ...TIME_RANGE,
  event: id.exactOptional().meta({ description: 'Only this event.' }),
})

export const replays: readonly ApiRoute[] = withTag('replays', [
  route({
    method: 'GET',
    path: '/v1/replays',
    name: 'listReplays',
    summary: 'Lists the last 1,000 replays, newest first.',
    response: z.strictObject({ items: z.array(replay) }),
    handle: async (app) => ({ items: (await app.admin.replays.list()).map(toReplayResponse) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/count',
    name: 'countReplay',
    summary: 'Counts the events that a replay with this filter would read.',
    query: FILTER,
    response: countResult,
    handle: async (app, { query }) => ({ count: await app.admin.replays.count(query) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/plan',
    name: 'planReplay',
    summary:
      'Returns what a replay with this filter would do: how many events it reads, and what each flow makes of a sample.',
    query: FILTER.extend({
      into: z
        .string()
        .min(1)
        .max(8_192)
        .transform((text) => text.split(','))
        .exactOptional()
        .meta({ description: 'The flows that get the events, separated by commas. Default: all flows.' }),
    }),
    response: z.strictObject({
      count: z.int(),
      exact: z.boolean().meta({ description: 'False if there are more events than were counted.' }),
      bytes: z.int().meta({ description: 'The size of the bodies, scaled from the sample.' }),
      oldest: timestamp.optional(),
      newest: timestamp.optional(),
      flows: z
        .array(
          z.strictObject({
            flow: z.string(),
            placed: z.int(),
            skipped: z.int().meta({ description: 'Events in which the flow finds no key.' }),
            unwanted: z.int(),
            failed: z.int(),
            lanes: z.int().meta({ description: 'The lanes of the sampled events.' }),
            sampled: z.int(),
          }),
        )
        .meta({ description: 'Scaled from the newest 500 events, or 4 MB of them.' }),
    }),
    handle: (app, { query: { into: flows, ...filter } }) => app.admin.replays.plan(filter, flows),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/{id}',
    name: 'showReplay',
    summary: 'Returns the progress of a replay.',
    params: ID_PARAMS,
    response: replay,
    handle: async (app, { params }) => {
      return toReplayResponse(orNotFound(await app.admin.replays.show(params.id), 'replay', params.id))
    },
  }),
  route({
    method: 'POST',
    path: '/v1/replays',
    name: 'startReplay',
    summary: 'Starts a replay of stored events. Calls with the same id start it once.',
    body: z.strictObject({
      filter: FILTER.meta({ description: 'The events to replay; {} matches every stored event.' }),
      id: z.string().min(1).max(200).exactOptional(),
      into,
      rate: z.int().min(1).max(1_000_000).exactOptional().meta({ description: 'Events per `per`. Default: 100.' }),
      per: duration.exactOptional().meta({ description: 'Default: one second.' }),
      most: z.int().min(1).exactOptional().meta({ description: 'Only this many of the events, the oldest ones.' }),
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
    summary: 'Cancels a replay. Events that it already placed still run.',
    params: ID_PARAMS,
    response: steerResult,
    auditText: ({ params }) => `cancel the replay ${params.id}`,
    handle: async (app, { params }) => ({
      result: orNotFound(await app.admin.replays.cancel(params.id), 'replay', params.id),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/replays/{id}/resume',
    name: 'resumeReplay',
    summary: 'Resumes a cancelled replay from where it stopped.',
    params: ID_PARAMS,
    response: steerResult,
    auditText: ({ params }) => `resume the replay ${params.id}`,
    handle: async (app, { params }) => ({
      result: orNotFound(await app.admin.replays.resume(params.id), 'replay', params.id),
    }),
  }),
])
