// Sources: which there are, and what they refused, so that a wrong secret is found in a minute.
import { z } from 'zod'
import type { Operated } from '../operated.ts'
import { route, type ApiRoute } from '../route.ts'
import { moment, name, NOTHING } from '../schemas.ts'
import { missing } from './missing.ts'

const TAG = 'sources'
/** No source can be called so. */
const NONE = '-'

const REFUSED = z.strictObject({
  at: moment,
  request: z.string(),
  source: z.string(),
  code: z.string(),
  what: z.string(),
  fix: z.string(),
  method: z.string(),
  path: z.string(),
  address: z.string(),
  headers: z.record(z.string(), z.string()).meta({ description: 'Without what could be a secret.' }),
  bytes: z.int(),
  excerpt: z.string().meta({ description: 'The beginning of the body. It is data of a stranger.' }),
})

export const sources: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/sources',
    name: 'listSources',
    tag: TAG,
    summary: 'Those of this app.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({
      items: z.array(z.strictObject({ name: z.string(), scheme: z.string(), path: z.string() })),
    }),
    handle: async (app) => ({ items: [...app.sources.list()] }),
  }),
  route({
    method: 'GET',
    path: '/v1/sources/{name}/refused',
    name: 'listRefused',
    tag: TAG,
    summary: 'The last requests that it refused, newest first; of - those to no source.',
    role: 'read',
    params: z.strictObject({ name }),
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(REFUSED) }),
    handle: async (app, { params }) => {
      if (params.name !== NONE) mustBeDeclared(app, params.name)
      return { items: [...(await app.sources.refused(params.name === NONE ? '' : params.name))] }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sources/{name}/show-secret',
    name: 'showSecret',
    tag: TAG,
    summary: 'The secret that came by handshake, to be compared with what the sending side shows.',
    // A look, but at what opens a door.
    role: 'operate',
    params: z.strictObject({ name }),
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({
      secret: z.string().optional().meta({ description: 'Not there: none has come, or it was given by the app.' }),
    }),
    audited: 'in its commit',
    handle: async (app, { params, who }) => {
      mustBeDeclared(app, params.name)
      return { secret: await app.sources.secret(params.name, who) }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sources/{name}/forget-secret',
    name: 'forgetSecret',
    tag: TAG,
    summary: 'One that got its secret by handshake waits for the next one.',
    role: 'operate',
    params: z.strictObject({ name }),
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ result: z.enum(['forgotten', 'none']) }),
    audited: 'in its commit',
    handle: async (app, { params, who }) => {
      mustBeDeclared(app, params.name)
      return { result: await app.sources.forgetSecret(params.name, who) }
    },
  }),
]

function mustBeDeclared(app: Operated, source: string): void {
  if (!app.sources.list().some((one) => one.name === source)) throw missing('source', source)
}
