// Routes of the keys of this API, the encryption keys and the audit log. Only the response that creates a key contains
// its secret.
import { z } from 'zod'
import { orSuggest, route, withTag, type ApiRoute } from '../route.ts'
import { id, PAGE_QUERY, pageOf, tenant, TIME_RANGE, timestamp } from '../schemas.ts'

const role = z.enum(['read', 'publish', 'register', 'operate'])
const keyTenant = tenant.meta({
  description: 'Only with the role `register`: the tenant of the endpoints that it creates.',
})

const KEY = z.strictObject({
  id: z.string(),
  name: z.string(),
  role,
  tenant: keyTenant.optional(),
  created: timestamp,
  by: z.string(),
})

export const keys: readonly ApiRoute[] = withTag('keys', [
  route({
    method: 'GET',
    path: '/v1/keys',
    name: 'listKeys',
    summary: 'Lists all keys without their secrets.',
    response: z.strictObject({ items: z.array(KEY) }),
    handle: async (app) => ({ items: await app.admin.keys.list() }),
  }),
  route({
    method: 'POST',
    path: '/v1/keys',
    name: 'createKey',
    summary: 'Creates a key. The response contains its secret, which is shown once.',
    body: z.strictObject({
      name: z.string().regex(/^\w[\w .@-]{0,99}$/, 'it must have 1 to 100 letters, digits, spaces and . @ _ -'),
      role,
      tenant: keyTenant.exactOptional(),
    }),
    response: KEY.extend({ secret: z.string() }),
    auditText: 'in its commit',
    handle: (app, { body, actor }) => app.admin.keys.create({ ...body, by: actor }),
  }),
  route({
    method: 'DELETE',
    path: '/v1/keys/{id}',
    name: 'revokeKey',
    summary: 'Revokes a key by its id or name, at once.',
    params: z.strictObject({ id }),
    response: z.strictObject({ result: z.literal('ok') }),
    auditText: 'in its commit',
    handle: async (app, { params, actor }) => ({
      result: await orSuggest(await app.admin.keys.revoke(params.id, actor), 'key', params.id, async () =>
        (await app.admin.keys.list()).map(({ name }) => name),
      ),
    }),
  }),
])

export const encryption: readonly ApiRoute[] = withTag('encryption', [
  route({
    method: 'GET',
    path: '/v1/encryption',
    name: 'showEncryption',
    summary:
      'Counts the encrypted documents by key. With `older` 0 and no `unreadable` ones, only the first key is needed.',
    response: z.strictObject({
      key: z.string().describe('A name that identifies the key and reveals nothing about it. Empty if no key is set.'),
      documents: z.number().int(),
      older: z.number().int(),
      unreadable: z.array(z.string()),
    }),
    handle: (app) => app.admin.encryption.state(),
  }),
  route({
    method: 'POST',
    path: '/v1/encryption/rotate',
    name: 'rotateEncryption',
    summary: 'Encrypts one page of documents with the first key. Call it again with `after` = `next`.',
    body: z.strictObject({ after: z.string().max(300).exactOptional() }),
    response: z.strictObject({
      scanned: z.number().int(),
      reencrypted: z.number().int(),
      unreadable: z.array(z.string()),
      next: z.string().optional(),
    }),
    auditText: 'in its commit',
    handle: (app, { body, actor }) => app.admin.encryption.rotate({ ...body, by: actor }),
  }),
])

const ENTRY = z.strictObject({
  id: z.int(),
  at: timestamp,
  who: z.string().meta({ description: 'The name of the key, or loopback.' }),
  what: z.string(),
  chain: z.string().meta({ description: 'A hash of this entry and the previous one.' }),
})

export const audit: readonly ApiRoute[] = withTag('audit', [
  route({
    method: 'GET',
    path: '/v1/audit',
    name: 'listAudit',
    summary: 'Lists all actions, newest first: one entry for the request, one for the outcome.',
    query: z.strictObject({ ...TIME_RANGE, ...PAGE_QUERY }),
    response: pageOf(ENTRY),
    handle: (app, { query: { cursor, limit, ...filter } }) => app.admin.audit.list(filter, cursor, limit),
  }),
  route({
    method: 'GET',
    path: '/v1/audit/verify',
    name: 'verifyAudit',
    summary: 'Verifies the whole chain: reports whether an entry was changed or is missing.',
    query: z.strictObject({
      head: z
        .string()
        .regex(/^[\w-]{43}$/, 'it must be the `chain` of an entry')
        .exactOptional()
        .meta({ description: 'The `chain` of an entry that was once the newest; the log must still contain it.' }),
    }),
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
])
