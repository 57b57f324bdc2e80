// The audit log: who did what, and whether anybody has changed it since.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { asked, moment, NOTHING, PAGE, pageOf } from '../schemas.ts'

const TAG = 'audit'

const ENTRY = z.strictObject({
  id: z.int(),
  at: moment,
  who: z.string().meta({ description: 'The name of the key, or loopback.' }),
  what: z.string(),
  chain: z.string().meta({ description: 'A hash of this entry and the one before.' }),
})

export const audit: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/audit',
    name: 'listAudit',
    tag: TAG,
    summary: 'Every act, newest first: that it was asked for, and then what became of it.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({ from: asked.exactOptional(), to: asked.exactOptional(), ...PAGE }),
    body: NOTHING,
    answer: pageOf(ENTRY),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.audit.list(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/audit/verify',
    name: 'verifyAudit',
    tag: TAG,
    summary: 'Walks the whole chain: whether an entry was changed or is missing.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({
      head: z
        .string()
        .regex(/^[\w-]{43}$/, 'it is the `chain` of an entry')
        .exactOptional()
        .meta({ description: 'The `chain` of an entry that was the newest once: it must still be in the log.' }),
    }),
    body: NOTHING,
    answer: z.union([
      z.strictObject({
        kind: z.literal('whole'),
        entries: z.int(),
        head: z
          .strictObject({ id: z.int(), chain: z.string() })
          .optional()
          .meta({ description: 'The newest entry, to be kept elsewhere; not there while there is none.' }),
      }),
      z.strictObject({
        kind: z.literal('broken'),
        why: z.enum(['changed', 'cut', 'unknown']).meta({
          description:
            '`changed`: the entry, or one before it; `cut`: from it on they are gone; `unknown`: `head` is not in the log.',
        }),
        at: z.int(),
        entries: z.int(),
      }),
    ]),
    handle: (app, { query }) => app.audit.verify(query.head),
  }),
]
