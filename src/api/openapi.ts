// Builds the OpenAPI document from the routes themselves.
import { z } from 'zod'
import type { ApiRoute, Role } from './route.ts'
import { ROUTES } from './routes/index.ts'
import { CHANGE_KINDS } from './stream.ts'

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
      description: 'Missing if the request was rejected before routing, e.g. with HEADERS_TOO_LARGE.',
    },
  },
} as const

const CHANGE = {
  type: 'object',
  required: ['kind', 'at', 'flow', 'id', 'detail'],
  properties: {
    kind: { type: 'string', enum: CHANGE_KINDS },
    at: { type: 'integer', description: 'Milliseconds since 1970.' },
    flow: { type: 'string', description: 'Empty if no flow is involved.' },
    id: { type: 'string', description: 'The id of the event, run, dead letter, lane or flow.' },
    detail: { type: 'string', description: 'The type of an event, how a run ended, or the action of an operator.' },
    lane: { type: 'string', description: 'Present, with `key`, if one lane is involved and known.' },
    key: { type: 'string' },
    source: { type: 'string', description: 'The source of an event.' },
    lanes: {
      type: 'array',
      description: 'The first 8 lanes that a new event entered. A long key is missing.',
      maxItems: 8,
      items: {
        type: 'object',
        required: ['lane', 'flow'],
        properties: { lane: { type: 'string' }, flow: { type: 'string' }, key: { type: 'string' } },
      },
    },
    note: { type: 'string', description: 'Why some flow, or every flow, does not take the event.' },
  },
} as const

const STREAM = {
  operationId: 'stream',
  tags: ['stream'],
  summary: 'Streams changes live as server-sent events.',
  description:
    'Each message has an `id`, the kind as `event`, and a Change as `data`. `begun` comes first; `skipped` reports missed changes.',
  parameters: [
    {
      name: 'last-event-id',
      in: 'header',
      required: false,
      description: 'The id of the last message received, to resume after it.',
      schema: { type: 'string' },
    },
  ],
  responses: {
    200: {
      description: 'Open until the client closes it.',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    default: { $ref: '#/components/responses/Problem' },
  },
} as const

export function buildOpenApi(): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of ROUTES) {
    const at = (paths[route.path] ??= {})
    at[route.method.toLowerCase()] = toOperation(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin API',
      version: '1',
      description: 'The API to operate an app, for people and programs. Times are milliseconds since 1970.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths: { ...paths, '/v1/stream': { get: STREAM } },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: '`sluice keys create` creates one.' } },
      schemas: { Problem: PROBLEM, Change: CHANGE },
      responses: {
        Problem: {
          description: 'The call failed; `code` and `fix` say why and what to do.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  }
}

const ROLE_NOTES: Readonly<Partial<Record<Role, string>>> = {
  publish: 'Needs a key with the role `publish` or `operate`.',
  register:
    'Needs a key with the role `operate`, or with the role `register` for the tenant of that key. Writes to the audit log.',
  operate: 'Needs a key with the role `operate`. Writes to the audit log.',
}
const OWN_TOKEN_NOTE = 'The token of the endpoint also works.'

function toOperation(route: ApiRoute): object {
  const {
    name,
    tag,
    summary,
    role,
    allowsOwnToken: own,
    status = 200,
    params,
    query,
    body,
    response: answer,
    method,
  } = route
  const parameters = [...toParameters(params, 'path'), ...toParameters(query, 'query')]
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: [ROLE_NOTES[role] ?? [], own === true ? OWN_TOKEN_NOTE : []].flat().join(' '),
    ...(parameters.length > 0 && { parameters }),
    ...(method !== 'GET' && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: toJsonSchema(body, 'input') }, ...toOtherTypes(route) },
      },
    }),
    responses: {
      [status]: { description: 'Done.', content: { 'application/json': { schema: toJsonSchema(answer, 'output') } } },
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

function toOtherTypes({ bodyTypes = {} }: ApiRoute): object {
  return Object.fromEntries(Object.entries(bodyTypes).map(([type, description]) => [type, { schema: { description } }]))
}

function toParameters(schema: z.ZodObject, where: 'path' | 'query'): object[] {
  const { properties = {}, required = [] } = toJsonSchema(schema, 'input')
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

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly description?: string
}

function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...made } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return made as JsonSchema
}
