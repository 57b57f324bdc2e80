// Routes of the audit log: its entries, and whether any was changed or removed.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { timeInput, timestamp, NO_FIELDS, PAGE_QUERY, pageOf } from '../schemas.ts'

const TAG = 'audit'

const ENTRY = z.strictObject({
  id: z.int(),
  at: timestamp,
  who: z.string().meta({ description: 'The name of the key, or loopback.' }),
  what: z.string(),
  chain: z.string().meta({ description: 'A hash of this entry and the previous one.' }),
})

export const audit: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/audit',
    name: 'listAudit',
    tag: TAG,
    summary: 'Lists all actions, newest first: one entry for the request, one for the outcome.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({ from: timeInput.exactOptional(), to: timeInput.exactOptional(), ...PAGE_QUERY }),
    body: NO_FIELDS,
    response: pageOf(ENTRY),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.admin.audit.list(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/audit/verify',
    name: 'verifyAudit',
    tag: TAG,
    summary: 'Verifies the whole chain: reports whether an entry was changed or is missing.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({
      head: z
        .string()
        .regex(/^[\w-]{43}$/, 'it must be the `chain` of an entry')
        .exactOptional()
        .meta({ description: 'The `chain` of an entry that was once the newest; the log must still contain it.' }),
    }),
    body: NO_FIELDS,
    response: z.union([
      z.strictObject({
        kind: z.literal('whole'),
        entries: z.int(),
        head: z
          .strictObject({ id: z.int(), chain: z.string() })
          .optional()
          .meta({ description: 'The newest entry, to keep elsewhere. Missing while the log is empty.' }),
      }),
      z.strictObject({
        kind: z.literal('broken'),
        why: z.enum(['changed', 'cut', 'unknown']).meta({
          description:
            '`changed`: this entry or one before it was changed; `cut`: the entries from here on are missing; `unknown`: `head` is not in the log.',
        }),
        at: z.int(),
        entries: z.int(),
      }),
    ]),
    handle: (app, { query }) => app.admin.audit.verify(query.head),
  }),
]
