// Keys to this API: made, listed, revoked. The secret is in the answer that makes it, and nowhere else. And the master key that
// seals what is at rest: where its exchange stands, and a page of it.
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
  route({
    method: 'GET',
    path: '/v1/keys/master',
    name: 'showMasterKey',
    tag: TAG,
    summary: 'How much is sealed under which master key; nothing older, nothing unreadable: one key is enough.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({
      key: z.string().describe('Tells keys apart, and nothing of them; empty without one.'),
      documents: z.number().int(),
      older: z.number().int(),
      unreadable: z.array(z.string()),
    }),
    handle: async (app) => {
      const { unreadable, ...state } = await app.masterKey.state()
      return { ...state, unreadable: [...unreadable] }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/keys/rotate-master',
    name: 'rotateMasterKey',
    tag: TAG,
    summary: 'Seals a page of what is under an older master key anew; asked again with after = next.',
    role: 'operate',
    params: NOTHING,
    query: NOTHING,
    body: z.strictObject({ after: z.string().max(300).optional() }),
    answer: z.strictObject({
      looked: z.number().int(),
      resealed: z.number().int(),
      unreadable: z.array(z.string()),
      next: z.string().optional(),
    }),
    audited: 'in its commit',
    handle: async (app, { body, who }) => {
      const { unreadable, next, ...page } = await app.masterKey.rotate({ ...body, by: who } as { after?: string })
      return { ...page, unreadable: [...unreadable], ...(next !== undefined && { next }) }
    },
  }),
]
