// Routes of dead letters and unrouted events: list, export, retry and drop, by id or by filter.
import { z } from 'zod'
import type { SteerResult } from '../../admin/lanes.ts'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import {
  attempt,
  countResult,
  id,
  LANE_FILTER,
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
  ...TIME_RANGE,
})

/** An action needs a filter or `all`, so that a lost filter cannot act on every dead letter. */
const FILTER_OR_ALL = FILTER.extend({
  all: z.literal(true).exactOptional().meta({ description: 'Instead of a filter.' }),
})
  .refine(({ all, ...filter }) => (all === undefined) !== (Object.keys(filter).length === 0), {
    error:
      'say which by at least one of flow, key, tenant, subject, from, to and kind, or {"all":true} for all there are',
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
    response: countResult,
    handle: async (app, { query }) => ({ count: await app.admin.deadLetters.count(query) }),
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
      const letter = orNotFound(await app.admin.deadLetters.show(params.id), 'dead letter', params.id)
      return { ...letter, contents: letter.contents.map((event) => event.toJSON()) } as never
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
      response: countResult,
      auditText: ({ body }) => `${act} the dead letters of ${JSON.stringify(body)}`,
      handle: async (app, { body: { all: _all, ...filter } }) => {
        const result = await app.admin.deadLetters[act](filter)
        return { count: typeof result === 'string' ? 0 : result.count }
      },
    }),
  ]),
])
