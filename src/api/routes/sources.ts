// Routes of sources: the list, the requests they refused with the reasons, and the secrets that came by handshake.
import { z } from 'zod'
import { listChecks } from '../../admin/source-activity.ts'
import { orSuggest, route, withTag, type ApiRoute, type ApiTarget } from '../route.ts'
import { timestamp, name } from '../schemas.ts'

/** In a path, this name selects the requests to unknown sources. No source can have it. */
const UNKNOWN_SOURCES = '-'

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
  checks: z
    .array(
      z.strictObject({
        step: z.enum(['path', 'size', 'header', 'signature', 'time', 'read', 'stored']),
        state: z.enum(['passed', 'failed', 'skipped']),
        text: z.string().meta({ description: 'Why it failed; empty otherwise.' }),
      }),
    )
    .meta({ description: 'How far the request came.' }),
  autopsy: z
    .strictObject({
      header: z.string().optional().meta({ description: 'The header of the signature.' }),
      given: z.string().optional().meta({ description: 'The beginning of the signature that was sent.' }),
      signedParts: z.array(z.string()).max(8).optional().meta({ description: 'What the signature was computed of.' }),
      signedBytes: z.int().optional(),
      skewMs: z.number().optional().meta({ description: 'How much later the request arrived than it was signed.' }),
      secretsTried: z.int(),
    })
    .optional()
    .meta({ description: 'What the verification read, if it refused the request.' }),
})

const SOURCE = z.strictObject({
  name: z.string(),
  scheme: z.string(),
  path: z.string(),
  verified: z.boolean(),
  receivedHour: z.int(),
  refusedHour: z.int().meta({ description: 'Among the last 50 refused requests.' }),
  byReason: z.record(z.string(), z.int()).meta({ description: 'The refused requests of the last hour by code.' }),
  lastReceived: timestamp
    .optional()
    .meta({ description: 'Within the last day: the minute in which the latest event arrived.' }),
})

export const sources: readonly ApiRoute[] = withTag('sources', [
  route({
    method: 'GET',
    path: '/v1/sources',
    name: 'listSources',
    summary: 'Lists the sources of this app, with what they received and refused in the last hour.',
    response: z.strictObject({ items: z.array(SOURCE) }),
    handle: async (app) => ({ items: (await app.admin.sources.activity()) as never }),
  }),
  route({
    method: 'POST',
    path: '/v1/sources/{name}/sample',
    name: 'signSample',
    summary: 'Signs a test request to a source as its provider would. It rejects schemes that send the secret itself.',
    params: z.strictObject({ name }),
    body: z.strictObject({
      origin: z
        .url({ protocol: /^https?$/ })
        .max(300)
        .default('http://localhost:8787')
        .meta({ description: 'Where the server is reached.', example: 'https://hooks.example.com' }),
    }),
    response: z.strictObject({
      method: z.string(),
      url: z.string(),
      headers: z.record(z.string(), z.string()),
      body64: z.string(),
      curl: z.string().meta({ description: 'The same as a command.' }),
    }),
    auditText: ({ params }) => `sign a test request to the source ${params.name}`,
    handle: async (app, { params, body }) =>
      orSuggestSource(app, await app.admin.sources.sample(params.name, body.origin), params.name),
  }),
  route({
    method: 'GET',
    path: '/v1/sources/{name}/refused',
    name: 'listRefused',
    summary:
      'Lists the last requests that a source refused, newest first. The name `-` selects requests to unknown sources.',
    params: z.strictObject({ name }),
    response: z.strictObject({ items: z.array(REFUSED) }),
    handle: async (app, { params }) => {
      if (params.name !== UNKNOWN_SOURCES) await assertSourceDeclared(app, params.name)
      const items = await app.admin.sources.refused(params.name === UNKNOWN_SOURCES ? '' : params.name)
      return { items: items.map((one) => ({ ...one, checks: listChecks(one) })) }
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
    handle: async (app, { params, actor }) => {
      await assertSourceDeclared(app, params.name)
      return { secret: await app.admin.sources.secret(params.name, actor) }
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
    handle: async (app, { params, actor }) => {
      await assertSourceDeclared(app, params.name)
      return { result: await app.admin.sources.forgetSecret(params.name, actor) }
    },
  }),
])

async function assertSourceDeclared(app: ApiTarget, source: string): Promise<void> {
  await orSuggestSource(
    app,
    app.admin.sources.list().find((one) => one.name === source),
    source,
  )
}

function orSuggestSource<T>(app: ApiTarget, found: T, source: string): Promise<Exclude<T, undefined | 'missing'>> {
  return orSuggest(found, 'source', source, async () => app.admin.sources.list().map((one) => one.name))
}
