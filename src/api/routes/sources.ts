// Routes of sources: the list, and the requests they refused, so that a wrong secret is found in a minute.
import { z } from 'zod'
import { orNotFound, route, withTag, type ApiRoute, type ApiTarget } from '../route.ts'
import { timestamp, name } from '../schemas.ts'

/** No source can have this name. */
const NO_SOURCE_NAME = '-'

const REFUSED = z.strictObject({
  at: timestamp,
  request: z.string(),
  source: z.string(),
  code: z.string(),
  what: z.string(),
  fix: z.string(),
  method: z.string(),
  path: z.string(),
  address: z.string(),
  headers: z.record(z.string(), z.string()).meta({ description: 'Without headers that could be secret.' }),
  bytes: z.int(),
  excerpt: z.string().meta({ description: 'The beginning of the body. Untrusted data.' }),
})

export const sources: readonly ApiRoute[] = withTag('sources', [
  route({
    method: 'GET',
    path: '/v1/sources',
    name: 'listSources',
    summary: 'Lists the sources of this app.',
    response: z.strictObject({
      items: z.array(z.strictObject({ name: z.string(), scheme: z.string(), path: z.string() })),
    }),
    handle: async (app) => ({ items: app.admin.sources.list() }),
  }),
  route({
    method: 'GET',
    path: '/v1/sources/{name}/refused',
    name: 'listRefused',
    summary: 'Lists the last requests that a source refused, newest first; for `-`, those to no source.',
    params: z.strictObject({ name }),
    response: z.strictObject({ items: z.array(REFUSED) }),
    handle: async (app, { params }) => {
      if (params.name !== NO_SOURCE_NAME) assertSourceDeclared(app, params.name)
      return { items: await app.admin.sources.refused(params.name === NO_SOURCE_NAME ? '' : params.name) }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sources/{name}/show-secret',
    name: 'showSecret',
    summary: 'Returns the secret that came by handshake, to compare with the one the provider shows.',
    // This route only reads, but it reveals a secret.
    params: z.strictObject({ name }),
    response: z.strictObject({
      secret: z
        .string()
        .optional()
        .meta({ description: 'Missing if no handshake brought one, or if the app sets it in code.' }),
    }),
    auditText: 'in its commit',
    handle: async (app, { params, actor: who }) => {
      assertSourceDeclared(app, params.name)
      return { secret: await app.admin.sources.secret(params.name, who) }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sources/{name}/forget-secret',
    name: 'forgetSecret',
    summary: 'Forgets a secret that came by handshake; the source waits for the next handshake.',
    params: z.strictObject({ name }),
    response: z.strictObject({ result: z.enum(['forgotten', 'none']) }),
    auditText: 'in its commit',
    handle: async (app, { params, actor: who }) => {
      assertSourceDeclared(app, params.name)
      return { result: await app.admin.sources.forgetSecret(params.name, who) }
    },
  }),
])

function assertSourceDeclared(app: ApiTarget, source: string): void {
  orNotFound(
    app.admin.sources.list().find((one) => one.name === source),
    'source',
    source,
  )
}
