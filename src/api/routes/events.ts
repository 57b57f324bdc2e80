// Routes of stored events: search, read one, replay one, purge.
import { z } from 'zod'
import { SluiceError } from '../../errors.ts'
import type { EventInput } from '../../model/event.ts'
import { parsePublishedEvents, PUBLISHED } from '../published-events.ts'
import { orNotFound, route, withTag, type ApiRoute, type ApiTarget } from '../route.ts'
import {
  attempt,
  duration,
  EVENT_FILTER,
  id,
  laneId,
  laneKey,
  laneState,
  name,
  PAGE_QUERY,
  subject,
  pageOf,
  TIME_RANGE,
  timeInput,
  timestamp,
} from '../schemas.ts'
import { into, replay, toReplayResponse } from './replays.ts'
import { LANE_RUN } from './lanes.ts'
import { runKind } from './runs.ts'
import { deliveryAttempt, deliveryStatus } from './subscriber-schemas.ts'

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
      due: timestamp.optional(),
      waiting: z.int().optional().meta({ description: 'How many events wait in the lane.' }),
      position: z
        .int()
        .min(1)
        .optional()
        .meta({ description: 'Its place among them, within the first 100; 1 is next.' }),
      run: LANE_RUN.optional().meta({ description: 'The run of the lane, if it has the event.' }),
    }),
  ),
  deliveries: z
    .array(
      z.strictObject({
        endpoint: z.string(),
        name: z.string(),
        run: z.string().optional().meta({ description: 'Missing while the event waits for its batch.' }),
        status: deliveryStatus,
        attempts: z.array(deliveryAttempt),
        nextRetryAt: timestamp.optional(),
      }),
    )
    .meta({ description: 'For the first 8 endpoints, among the last 50 deliveries of each.' }),
  keptUntil: timestamp.meta({
    description: 'The event is kept at least until then, and longer while it waits or runs.',
  }),
  runs: z
    .array(
      z.strictObject({
        id: z.string(),
        lane: laneId,
        flow: z.string(),
        key: z.string(),
        kind: runKind,
        reason: z.string(),
        started: timestamp,
        ended: timestamp,
        tries: z.int(),
        attempts: z.array(attempt).meta({ description: 'The failed attempts.' }),
        events: z.int().meta({ description: 'The number of its events.' }),
        due: timestamp.optional().meta({ description: 'When its window ended.' }),
      }),
    )
    .meta({ description: 'The runs of the event, newest first, among the last 100 of each of its first 20 lanes.' }),
})

const publishKind = z.enum(['stored', 'repeated', 'duplicate', 'conflict', 'refused', 'in-transaction']).meta({
  description: '`repeated` and `duplicate`: it was stored before. `conflict` and `refused`: it is not stored.',
})

/** Only requests that a source has verified may have its name. */
function assertNoDeclaredSource(app: ApiTarget, inputs: readonly EventInput[]): void {
  const at = inputs.findIndex(({ source }) => source !== undefined && app.admin.sources.declared(source) !== undefined)
  if (at === -1) return
  const where = inputs.length === 1 ? '' : `${at}: `
  const got = JSON.stringify(inputs[at]?.source)
  throw new SluiceError(
    'EVENT_INVALID',
    `body: ${where}source must not be the name of a source of the app; got ${got}.`,
  )
}

function parseTarget(to: string): string | readonly string[] {
  return to.includes(',') ? to.split(',') : to
}

const WITHOUT_TIMES = {
  ...EVENT_FILTER,
  own: z
    .enum(['true', 'false'])
    .exactOptional()
    .meta({ description: 'Whether to include events that the engine publishes to itself.' }),
}
const FILTER = { ...WITHOUT_TIMES, ...TIME_RANGE }

export const events: readonly ApiRoute[] = withTag('events', [
  route({
    method: 'GET',
    path: '/v1/events',
    name: 'listEvents',
    summary: 'Lists stored events, newest first. All given filters must match. With `q`, searches for a text.',
    query: z.strictObject({
      ...FILTER,
      q: z.string().min(1).max(256).exactOptional().meta({
        description:
          'A text in the id, type, source, tenant, subject or payload, ignoring case, or the key of a lane. A page looks at up to 2,000 events or 8 MB and may be empty; `next` goes on.',
      }),
      ...PAGE_QUERY,
    }),
    response: pageOf(
      EVENT.extend({
        found: z.enum(['id', 'type', 'source', 'key', 'tenant', 'subject', 'payload']).optional(),
      }),
    ).extend({
      searched: z
        .strictObject({
          events: z.int(),
          from: timestamp
            .optional()
            .meta({ description: 'The arrival of the oldest event of this page that was looked at.' }),
          complete: z.boolean().meta({ description: 'Whether no older event is left.' }),
        })
        .optional()
        .meta({ description: 'With `q`: how far this page looked.' }),
    }),
    handle: (app, { query: { cursor, limit, own, ...filter } }) =>
      app.admin.events.list({ ...filter, own: own === 'true' }, cursor, limit),
  }),
  route({
    method: 'POST',
    path: '/v1/events',
    name: 'publishEvents',
    summary: 'Publishes one event or a list in one commit. The response means that the events are stored.',
    role: 'publish',
    status: 202,
    query: z.strictObject({
      at: timeInput.exactOptional().meta({ description: 'The earliest time of publication, for all events.' }),
      to: z
        .string()
        .min(1)
        .max(8_192)
        .exactOptional()
        .meta({ description: 'Only these flows, separated by commas, or one endpoint.' }),
    }),
    body: PUBLISHED,
    bodyTypes: {
      'application/cloudevents+json': 'One CloudEvent.',
      'application/cloudevents-batch+json': 'A list of CloudEvents.',
    },
    parseBody: parsePublishedEvents,
    response: z.strictObject({
      events: z.array(z.strictObject({ id: z.string(), kind: publishKind, of: z.string().optional() })),
    }),
    handle: async (app, { query: { at, to }, body }) => {
      assertNoDeclaredSource(app, body)
      const target = { ...(at !== undefined && { at }), ...(to !== undefined && { to: parseTarget(to) }) }
      const results = await app.publish(body, target)
      return { events: results.map(({ id: its, kind, of }) => ({ id: its, kind, ...(of !== undefined && { of }) })) }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/events/histogram',
    name: 'countEventsByTime',
    summary: 'Counts the arrivals of the last 24 hours in steps.',
    query: z.strictObject({
      ...WITHOUT_TIMES,
      step: duration.default('30m').meta({ description: 'A multiple of 10m, up to 24h.', example: '30m' }),
    }),
    response: z.strictObject({
      step: z.int(),
      from: timestamp.meta({ description: 'The start of the first step.' }),
      counts: z.array(z.int()).max(145),
      complete: z.boolean().meta({
        description:
          'False if a filter other than source and type matches more events than one call reads: older steps then lack some.',
      }),
    }),
    handle: (app, { query: { step, own, ...filter } }) =>
      app.admin.events.histogram({ ...filter, own: own === 'true' }, step),
  }),
  route({
    method: 'GET',
    path: '/v1/events/{id}',
    name: 'showEvent',
    summary: 'Returns an event with its body, request, receipts, lanes, runs and deliveries.',
    params: ID_PARAMS,
    response: EVENT_DETAILS,
    handle: async (app, { params }) => orNotFound(await app.admin.events.show(params.id), 'event', params.id),
  }),
  route({
    method: 'POST',
    path: '/v1/events/{id}/replay',
    name: 'replayEvent',
    summary: 'Replays one event.',
    params: ID_PARAMS,
    body: z.strictObject({ into }),
    response: replay,
    auditText: ({ params }) => `replay the event ${params.id}`,
    handle: async (app, { params, body }) => {
      orNotFound((await app.admin.replays.count({ event: params.id })) || undefined, 'event', params.id)
      return toReplayResponse(await app.admin.replays.start({ event: params.id }, body))
    },
  }),
])

export const purge: readonly ApiRoute[] = withTag('purge', [
  route({
    method: 'POST',
    path: '/v1/purge',
    name: 'purge',
    summary: 'Removes events with their requests, dead letters and runs. This cannot be undone.',
    body: z.union([
      z.strictObject({ flow: name, key: laneKey }),
      z.strictObject({ tenant: z.string().min(1).max(1_024) }),
      z.strictObject({ subject, tenant: z.string().min(1).max(1_024).exactOptional() }),
      z.strictObject({ event: id }),
    ]),
    response: z
      .strictObject({ events: z.int(), deadLetters: z.int(), runs: z.int() })
      .meta({ description: 'How many were removed.' }),
    auditText: ({ body }) => `purge ${JSON.stringify(body)}`,
    handle: (app, { body }) => app.admin.purge(body),
  }),
])
