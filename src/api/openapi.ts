// The OpenAPI document, made of the routes themselves.
import { z } from 'zod'
import type { ApiRoute } from './route.ts'
import { ROUTES } from './routes/index.ts'
import { KINDS } from './stream.ts'

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', description: 'Stable: codes are added, never renamed.' },
    fix: {
      type: 'string',
      description:
        'Not there where the request was refused before anybody looked what it was for, such as by HEADERS_TOO_LARGE.',
    },
  },
} as const

const CHANGE = {
  type: 'object',
  required: ['kind', 'at', 'flow', 'id', 'detail'],
  properties: {
    kind: { type: 'string', enum: KINDS },
    at: { type: 'integer', description: 'Milliseconds since 1970.' },
    flow: { type: 'string', description: 'Empty where none is concerned.' },
    id: { type: 'string', description: 'Of the event, the run, the dead letter, the lane or the flow.' },
    detail: { type: 'string', description: 'The type of an event, how a run ended, what a person did.' },
    lane: { type: 'string', description: 'Where one is concerned and known, and so is its key.' },
    key: { type: 'string' },
    source: { type: 'string', description: 'Of an event.' },
  },
} as const

const STREAM = {
  operationId: 'stream',
  tags: ['stream'],
  summary: 'What happens, as it happens, as server-sent events.',
  description:
    'Each has an `id`, the kind as `event`, and a Change as `data`. `begun` comes first; `skipped` says that some were missed.',
  parameters: [
    {
      name: 'last-event-id',
      in: 'header',
      required: false,
      description: 'Of the last one that came, to go on from there.',
      schema: { type: 'string' },
    },
  ],
  responses: {
    200: {
      description: 'For as long as it is read.',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    default: { $ref: '#/components/responses/Problem' },
  },
} as const

export function openApi(): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of ROUTES) {
    const at = (paths[route.path] ??= {})
    at[route.method.toLowerCase()] = operationOf(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin API',
      version: '1',
      description: 'What people and programs that operate an app can ask of it. Times are milliseconds since 1970.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths: { ...paths, '/v1/stream': { get: STREAM } },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: '`sluice keys make` gives one.' } },
      schemas: { Problem: PROBLEM, Change: CHANGE },
      responses: {
        Problem: {
          description: 'It was not done; `code` and `fix` say why, and what to do.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  }
}

const OPERATES = 'Needs a key of the role `operate`; is written to the audit log.'
const OWN = 'The own token of the subscriber will do.'

function operationOf(route: ApiRoute): object {
  const { name, tag, summary, role, own, status = 200, params, query, body, answer, method } = route
  const parameters = [...parametersOf(params, 'path'), ...parametersOf(query, 'query')]
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: [role === 'operate' ? OPERATES : [], own === true ? OWN : []].flat().join(' '),
    ...(parameters.length > 0 && { parameters }),
    ...(method !== 'GET' && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: schemaOf(body, 'input') } },
      },
    }),
    responses: {
      [status]: { description: 'Done.', content: { 'application/json': { schema: schemaOf(answer, 'output') } } },
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

function parametersOf(schema: z.ZodObject, where: 'path' | 'query'): object[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input')
  return Object.entries(properties).map(([name, of]) => {
    const { description, ...rest } = of
    return {
      name,
      in: where,
      required: where === 'path' || required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly description?: string
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Schema {
  const { $schema: _dialect, ...made } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return made as Schema
}
