// Routes of dead letters and unrouted events: list, export, retry and drop, by id or by filter.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import {
  timeInput,
  attempt,
  countResult,
  id,
  laneKey,
  timestamp,
  name,
  NO_FIELDS,
  PAGE_QUERY,
  pageOf,
  steerResult,
  tenant,
} from '../schemas.ts'
import { notFound } from './not-found.ts'

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

const UNROUTED = z.strictObject({
  kind: z.literal('unrouted'),
  id: z.string(),
  flow: z.string(),
  reason: z.string(),
  error: z.string(),
  at: timestamp,
  tries: z.int(),
  events: z.array(z.string()),
})

const EVENT = z.looseObject({ id: z.string(), type: z.string(), source: z.string() })
const CONTENTS = { contents: z.array(EVENT) }
const EXPORTED = { contents: z.array(EVENT.extend({ body64: z.string() })) }

const FILTER = z.strictObject({
  kind: z.enum(['run', 'unrouted']).exactOptional(),
  flow: name.exactOptional(),
  key: laneKey.exactOptional(),
  tenant: tenant.exactOptional(),
  from: timeInput.exactOptional(),
  to: timeInput.exactOptional(),
})

/** An action needs a filter or `all`, so that a lost filter cannot act on every dead letter. */
const FILTER_OR_ALL = FILTER.extend({
  all: z.literal(true).exactOptional().meta({ description: 'Instead of a filter.' }),
})
  .refine(({ all, ...filter }) => (all === undefined) !== (Object.keys(filter).length === 0), {
    error: 'say which by at least one of flow, key, tenant, from, to and kind, or {"all":true} for all there are',
  })
  .meta({ minProperties: 1 })

const ID_PARAMS = z.strictObject({ id })
const TAG = 'dead letters'

export const deadLetters: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/dead-letters',
    name: 'listDeadLetters',
    tag: TAG,
    summary: 'Lists dead letters, newest first. With `kind=unrouted`, lists unrouted events instead.',
    role: 'read',
    params: NO_FIELDS,
    query: FILTER.extend(PAGE_QUERY),
    body: NO_FIELDS,
    response: pageOf(z.union([RUN, UNROUTED])),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.admin.deadLetters.list(filter, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/count',
    name: 'countDeadLetters',
    tag: TAG,
    summary: 'Counts the dead letters that match a filter, including retried ones that have not ended yet.',
    role: 'read',
    params: NO_FIELDS,
    query: FILTER,
    body: NO_FIELDS,
    response: countResult,
    handle: async (app, { query }) => ({ count: await app.admin.deadLetters.count(query) }),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/export',
    name: 'exportDeadLetters',
    tag: TAG,
    summary: 'Lists dead letters with their events and bodies. A page ends early when it grows too large.',
    role: 'read',
    params: NO_FIELDS,
    query: FILTER.extend({
      ...PAGE_QUERY,
      limit: z
        .string()
        .regex(/^(?:100|[1-9]\d?)$/, 'it must be a number from 1 to 100')
        .default('20')
        .transform(Number)
        .meta({ description: 'The maximum number of items, 1 to 100.', example: '20' }),
    }),
    body: NO_FIELDS,
    response: pageOf(z.union([RUN.extend(EXPORTED), UNROUTED.extend(EXPORTED)])),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.admin.deadLetters.exportPage(filter, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/{id}',
    name: 'showDeadLetter',
    tag: TAG,
    summary: 'Returns a dead letter with its attempts and events.',
    role: 'read',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.union([RUN.extend(CONTENTS), UNROUTED.extend(CONTENTS)]),
    handle: async (app, { params }) => {
      const letter = await app.admin.deadLetters.show(params.id)
      if (letter === undefined) throw notFound('dead letter', params.id)
      return { ...letter, contents: letter.contents.map((event) => event.toJSON()) } as never
    },
  }),
  ...(['retry', 'drop'] as const).flatMap((act) => [
    route({
      method: 'POST',
      path: `/v1/dead-letters/{id}/${act}`,
      name: `${act}DeadLetter`,
      tag: TAG,
      summary:
        act === 'retry'
          ? 'Runs a dead letter again with all its attempts.'
          : 'Drops a dead letter; its events are deleted by age.',
      role: 'operate',
      params: ID_PARAMS,
      query: NO_FIELDS,
      body: NO_FIELDS,
      response: steerResult,
      auditText: ({ params }) => `${act} the dead letter ${params.id}`,
      handle: async (app, { params }) => {
        const result = await app.admin.deadLetters[act](params.id)
        if (typeof result !== 'string' || result === 'missing') throw notFound('dead letter', params.id)
        return { result }
      },
    }),
    route({
      method: 'POST',
      path: `/v1/dead-letters/${act}`,
      name: `${act}DeadLetters`,
      tag: TAG,
      summary: `${act === 'retry' ? 'Retries' : 'Drops'} all dead letters that match a filter, or all with { all: true }.`,
      role: 'operate',
      params: NO_FIELDS,
      query: NO_FIELDS,
      body: FILTER_OR_ALL,
      response: countResult,
      auditText: ({ body }) => `${act} the dead letters of ${JSON.stringify(body)}`,
      handle: async (app, { body: { all: _all, ...filter } }) => {
        const result = await app.admin.deadLetters[act](filter)
        return { count: typeof result === 'string' ? 0 : result.count }
      },
    }),
  ]),
]
