// Routes that create, list and revoke the keys of this API. Only the response that creates a key contains its secret.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { id, timestamp, NO_FIELDS } from '../schemas.ts'
import { notFound } from './not-found.ts'

const TAG = 'keys'
const role = z.enum(['read', 'operate'])

const KEY = z.strictObject({ id: z.string(), name: z.string(), role, made: timestamp, by: z.string() })

export const keys: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/keys',
    name: 'listKeys',
    tag: TAG,
    summary: 'Lists all keys without their secrets.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ items: z.array(KEY) }),
    handle: async (app) => ({ items: [...(await app.admin.keys.list())] }),
  }),
  route({
    method: 'POST',
    path: '/v1/keys',
    name: 'makeKey',
    tag: TAG,
    summary: 'Creates a key. The response contains its secret, which is shown once.',
    role: 'operate',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: z.strictObject({
      name: z.string().regex(/^\w[\w .@-]{0,99}$/, 'it must have 1 to 100 letters, digits, spaces and . @ _ -'),
      role,
    }),
    response: KEY.extend({ secret: z.string() }),
    auditText: 'in its commit',
    handle: (app, { body, actor: who }) => app.admin.keys.make({ ...body, by: who }),
  }),
  route({
    method: 'DELETE',
    path: '/v1/keys/{id}',
    name: 'revokeKey',
    tag: TAG,
    summary: 'Revokes a key by its id or name, at once.',
    role: 'operate',
    params: z.strictObject({ id }),
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ result: z.literal('ok') }),
    auditText: 'in its commit',
    handle: async (app, { params, actor: who }) => {
      const result = await app.admin.keys.revoke(params.id, who)
      if (result === 'missing') throw notFound('key', params.id)
      return { result }
    },
  }),
]
