// Keys to this API: made, listed, revoked. The secret is in the answer that makes it, and nowhere else.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { id, moment, NOTHING } from '../schemas.ts'
import { missing } from './missing.ts'

const TAG = 'keys'
const role = z.enum(['read', 'operate'])

const KEY = z.strictObject({ id: z.string(), name: z.string(), role, made: moment, by: z.string() })

export const keys: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/keys',
    name: 'listKeys',
    tag: TAG,
    summary: 'All keys, without their secrets.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(KEY) }),
    handle: async (app) => ({ items: [...(await app.keys.list())] }),
  }),
  route({
    method: 'POST',
    path: '/v1/keys',
    name: 'makeKey',
    tag: TAG,
    summary: 'The answer has the secret: it is shown now, and never again.',
    role: 'operate',
    params: NOTHING,
    query: NOTHING,
    body: z.strictObject({
      name: z.string().regex(/^\w[\w .@-]{0,99}$/, 'it has 1 to 100 letters, digits, spaces and . @ _ -'),
      role,
    }),
    answer: KEY.extend({ secret: z.string() }),
    audited: 'in its commit',
    handle: (app, { body, who }) => app.keys.make({ ...body, by: who }),
  }),
  route({
    method: 'DELETE',
    path: '/v1/keys/{id}',
    name: 'revokeKey',
    tag: TAG,
    summary: 'By its id or its name. From now on nobody gets in with it.',
    role: 'operate',
    params: z.strictObject({ id }),
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ result: z.literal('ok') }),
    audited: 'in its commit',
    handle: async (app, { params, who }) => {
      const result = await app.keys.revoke(params.id, who)
      if (result === 'missing') throw missing('key', params.id)
      return { result }
    },
  }),
]
