// Routes of dead letters and unrouted events: list, export, retry and drop, by id or by filter.
import { z } from 'zod'
import type { SteerResult } from '../../admin/lanes.ts'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import {
  attempt,
  id,
  LANE_FILTER,
  laneId,
  PAGE_QUERY,
  pageOf,
  steerResult,
  subject,
  TIME_RANGE,
  timestamp,
} from '../schemas.ts'

const RUN = z.strictObject({
  kind: z.literal('run'),
  id: z.string(),
  lane: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  reason: z.string(),
  at: timestamp,
  state: z.enum(['dead', 'queued', 'running']),
  tries: z.int(),
  lapses: z.int(),
  blocks: z.boolean(),
  attempts: z.array(attempt),
  events: z.array(z.string()),
})

const UNROUTED = RUN.pick({ id: true, flow: true, reason: true, at: true, tries: true, events: true }).extend({
  kind: z.literal('unrouted'),
  error: z.string(),
})

const EVENT = z.looseObject({ id: z.string(), type: z.string(), source: z.string() })
const CONTENTS = { contents: z.array(EVENT) }
const EXPORTED = { contents: z.array(EVENT.extend({ body64: z.string() })) }

const FILTER = z.strictObject({
  kind: z.enum(['run', 'unrouted']).exactOptional(),
  ...LANE_FILTER,
  subject: subject.exactOptional().meta({ description: 'Those that hold an event with this subject.' }),
  reason: z.string().min(1).max(500).exactOptional().meta({ description: 'A text in the reason, ignoring case.' }),
  ...TIME_RANGE,
})

const PREVIEW = z.strictObject({
  count: z.int().min(0),
  lanes: z.int(),
  events: z.int(),
  blocking: z.int().meta({ description: 'How many block their lane.' }),
  exact: z.boolean().meta({ description: 'False if there are more than were read: the numbers are lower bounds.' }),
})

const GROUP = z.strictObject({
  flow: z.string(),
  kind: z.enum(['run', 'unrouted']),
  reason: z.string().meta({ description: 'The reason of the newest one.' }),
  pattern: z.string().meta({ description: 'The filter `reason` that finds all of the group, and perhaps others.' }),
  count: z.int(),
  lanes: z.int(),
  blocking: z.int(),
  first: timestamp,
  last: timestamp,
  hours: z.array(z.int()).length(24).meta({ description: 'How many died in each of the last 24 hours.' }),
})

const PROGRESS = z.strictObject({
  id: z.string(),
  act: z.enum(['retry', 'drop']),
  by: z.string(),
  at: timestamp,
  count: z.int(),
  done: z.int().meta({ description: 'Runs that ended well, and dropped dead letters.' }),
  deadAgain: z.int(),
  open: z.int().meta({ description: 'Runs that wait or are in progress.' }),
})

/** An action needs a filter or `all`, so that a lost filter cannot act on every dead letter. */
const FILTER_OR_ALL = FILTER.extend({
  all: z.literal(true).exactOptional().meta({ description: 'Instead of a filter.' }),
  limit: z.int().min(1).max(10_000).exactOptional().meta({ description: 'Only the newest ones; 1 tries one first.' }),
})
  .refine(({ all, limit: _limit, ...filter }) => (all === undefined) !== (Object.keys(filter).length === 0), {
    error:
      'say which by at least one of flow, key, tenant, subject, reason, from, to and kind, or {"all":true} for all there are',
  })
  .meta({ minProperties: 1 })

const ID_PARAMS = z.strictObject({ id })

export const deadLetters: readonly ApiRoute[] = withTag('dead letters', [
  route({
    method: 'GET',
    path: '/v1/dead-letters',
    name: 'listDeadLetters',
    summary: 'Lists dead letters, newest first. With `kind=unrouted`, lists unrouted events instead.',
    query: FILTER.extend(PAGE_QUERY),
    response: pageOf(z.union([RUN, UNROUTED])),
    handle: (app, { query: { cursor, limit, ...filter } }) => app.admin.deadLetters.list(filter, cursor, limit),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/count',
    name: 'countDeadLetters',
    summary: 'Counts the dead letters that match a filter, including retried ones that have not ended yet.',
    query: FILTER,
    response: PREVIEW,
    handle: (app, { query }) => app.admin.deadLetters.preview(query),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/reasons',
    name: 'listDeadLetterReasons',
    summary: 'Groups the newest dead letters by why they died. Without `kind`, unrouted events are included.',
    query: FILTER,
    response: z.strictObject({
      now: timestamp,
      total: z.int(),
      exact: z.boolean().meta({ description: 'False if there are more than were read.' }),
      groups: z.array(GROUP).max(50).meta({ description: 'The largest first.' }),
    }),
    handle: (app, { query }) => app.admin.deadLetters.reasons(query),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/acts/{id}',
    name: 'showDeadLetterAct',
    summary: 'Returns what became of the dead letters of one of the last 50 actions by filter.',
    params: ID_PARAMS,
    response: PROGRESS,
    handle: async (app, { params }) => orNotFound(await app.admin.deadLetters.progress(params.id), 'act', params.id),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/export',
    name: 'exportDeadLetters',
    summary: 'Lists dead letters with their events and bodies. A page ends early when it grows too large.',
    query: FILTER.extend({
      ...PAGE_QUERY,
      limit: z
        .string()
        .regex(/^(?:100|[1-9]\d?)$/, 'it must be a number from 1 to 100')
        .default('20')
        .transform(Number)
        .meta({ description: 'The maximum number of items, 1 to 100.', example: '20' }),
    }),
    response: pageOf(z.union([RUN.extend(EXPORTED), UNROUTED.extend(EXPORTED)])),
    handle: async (app, { query: { cursor, limit, ...filter } }) =>
      (await app.admin.deadLetters.exportPage(filter, cursor, limit)) as never,
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/{id}',
    name: 'showDeadLetter',
    summary: 'Returns a dead letter with its attempts and events.',
    params: ID_PARAMS,
    response: z.union([RUN.extend(CONTENTS), UNROUTED.extend(CONTENTS)]),
    handle: async (app, { params }) => {
      const deadLetter = orNotFound(await app.admin.deadLetters.show(params.id), 'dead letter', params.id)
      return { ...deadLetter, contents: deadLetter.contents.map((event) => event.toJSON()) } as never
    },
  }),
  ...(['retry', 'drop'] as const).flatMap((act) => [
    route({
      method: 'POST',
      path: `/v1/dead-letters/{id}/${act}`,
      name: `${act}DeadLetter`,
      summary:
        act === 'retry'
          ? 'Runs a dead letter again with all its attempts.'
          : 'Drops a dead letter; its events are deleted by age.',
      params: ID_PARAMS,
      response: steerResult,
      auditText: ({ params }) => `${act} the dead letter ${params.id}`,
      handle: async (app, { params }) => {
        const result = orNotFound(await app.admin.deadLetters[act](params.id), 'dead letter', params.id)
        return { result: result as SteerResult }
      },
    }),
    route({
      method: 'POST',
      path: `/v1/dead-letters/${act}`,
      name: `${act}DeadLetters`,
      summary: `${act === 'retry' ? 'Retries' : 'Drops'} all dead letters that match a filter, or all with { all: true }.`,
      body: FILTER_OR_ALL,
      response: z.strictObject({
        count: z.int(),
        act: z.string().meta({ description: 'The id under which `/v1/dead-letters/acts` shows the progress.' }),
      }),
      auditText: ({ body }) => `${act} the dead letters of ${JSON.stringify(body)}`,
      handle: (app, { body: { all: _all, limit, ...filter }, actor: by }) =>
        app.admin.deadLetters.act(act, filter, { by, ...(limit !== undefined && { limit }) }),
    }),
  ]),
])
