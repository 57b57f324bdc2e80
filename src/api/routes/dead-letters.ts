// Dead letters: runs that died, and events that could not be routed. One, or all that a filter names, counted first.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import {
  asked,
  attempt,
  counted,
  id,
  laneKey,
  moment,
  name,
  NOTHING,
  PAGE,
  pageOf,
  steered,
  tenant,
} from '../schemas.ts'
import { missing } from './missing.ts'

const RUN = z.strictObject({
  kind: z.literal('run'),
  id: z.string(),
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  reason: z.string(),
  at: moment,
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
  at: moment,
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
  from: asked.exactOptional(),
  to: asked.exactOptional(),
})

/** Of an act: a filter that got lost on the way must not be all there are. */
const SOME = FILTER.extend({ all: z.literal(true).exactOptional().meta({ description: 'In place of a filter.' }) })
  .refine(({ all, ...filter }) => (all === undefined) !== (Object.keys(filter).length === 0), {
    error: 'say which by at least one of flow, key, tenant, from, to and kind, or {"all":true} for all there are',
  })
  .meta({ minProperties: 1 })

const ONE = z.strictObject({ id })
const TAG = 'dead letters'

export const deadLetters: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/dead-letters',
    name: 'listDeadLetters',
    tag: TAG,
    summary: 'Newest first. Those of runs, unless kind says unrouted.',
    role: 'read',
    params: NOTHING,
    query: FILTER.extend(PAGE),
    body: NOTHING,
    answer: pageOf(z.union([RUN, UNROUTED])),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.deadLetters.list(filter, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/count',
    name: 'countDeadLetters',
    tag: TAG,
    summary: 'How many the filter names, with those that were retried and have not ended yet.',
    role: 'read',
    params: NOTHING,
    query: FILTER,
    body: NOTHING,
    answer: counted,
    handle: async (app, { query }) => ({ count: await app.deadLetters.count(query) }),
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/export',
    name: 'exportDeadLetters',
    tag: TAG,
    summary: 'With their events and the bytes of these. A page ends early when it grows too long.',
    role: 'read',
    params: NOTHING,
    query: FILTER.extend({
      ...PAGE,
      limit: z
        .string()
        .regex(/^(?:100|[1-9]\d?)$/, 'it is a number from 1 to 100')
        .default('20')
        .transform(Number)
        .meta({ description: 'How many at most, 1 to 100.', example: '20' }),
    }),
    body: NOTHING,
    answer: pageOf(z.union([RUN.extend(EXPORTED), UNROUTED.extend(EXPORTED)])),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.deadLetters.exportPage(filter, cursor, limit)
      return { items: [...items] as never[], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/{id}',
    name: 'showDeadLetter',
    tag: TAG,
    summary: 'One, with its attempts and its events.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: z.union([RUN.extend(CONTENTS), UNROUTED.extend(CONTENTS)]),
    handle: async (app, { params }) => {
      const letter = await app.deadLetters.show(params.id)
      if (letter === undefined) throw missing('dead letter', params.id)
      return { ...letter, contents: letter.contents.map((event) => event.toJSON()) } as never
    },
  }),
  ...(['retry', 'drop'] as const).flatMap((act) => [
    route({
      method: 'POST',
      path: `/v1/dead-letters/{id}/${act}`,
      name: `${act}DeadLetter`,
      tag: TAG,
      summary: act === 'retry' ? 'The same run again, with all its tries.' : 'It is over; its events go by their age.',
      role: 'operate',
      params: ONE,
      query: NOTHING,
      body: NOTHING,
      answer: steered,
      audited: ({ params }) => `${act} the dead letter ${params.id}`,
      handle: async (app, { params }) => {
        const result = await app.deadLetters[act](params.id)
        if (typeof result !== 'string' || result === 'missing') throw missing('dead letter', params.id)
        return { result }
      },
    }),
    route({
      method: 'POST',
      path: `/v1/dead-letters/${act}`,
      name: `${act}DeadLetters`,
      tag: TAG,
      summary: `All that the filter names: ${act}. Without a filter, { all: true }.`,
      role: 'operate',
      params: NOTHING,
      query: NOTHING,
      body: SOME,
      answer: counted,
      audited: ({ body }) => `${act} the dead letters of ${JSON.stringify(body)}`,
      handle: async (app, { body: { all: _all, ...filter } }) => {
        const result = await app.deadLetters[act](filter)
        return { count: typeof result === 'string' ? 0 : result.count }
      },
    }),
  ]),
]
