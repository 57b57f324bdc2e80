// Routes that show which encryption keys the store uses, and rotate them page by page.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { NO_FIELDS } from '../schemas.ts'

export const encryption: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/encryption',
    name: 'showEncryption',
    tag: 'encryption',
    summary:
      'Counts the encrypted documents by key. With `older` 0 and no `unreadable` ones, only the first key is needed.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({
      key: z.string().describe('A name that identifies the key and reveals nothing about it. Empty if no key is set.'),
      documents: z.number().int(),
      older: z.number().int(),
      unreadable: z.array(z.string()),
    }),
    handle: async (app) => {
      const { unreadable, ...state } = await app.admin.encryption.state()
      return { ...state, unreadable: [...unreadable] }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/encryption/rotate',
    name: 'rotateEncryption',
    tag: 'encryption',
    summary: 'Encrypts one page of documents with the first key. Call it again with `after` = `next`.',
    role: 'operate',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: z.strictObject({ after: z.string().max(300).optional() }),
    response: z.strictObject({
      looked: z.number().int(),
      resealed: z.number().int(),
      unreadable: z.array(z.string()),
      next: z.string().optional(),
    }),
    auditText: 'in its commit',
    handle: async (app, { body, actor: who }) => {
      const { unreadable, next, ...page } = await app.admin.encryption.rotate({ ...body, by: who } as {
        after?: string
      })
      return { ...page, unreadable: [...unreadable], ...(next !== undefined && { next }) }
    },
  }),
]
