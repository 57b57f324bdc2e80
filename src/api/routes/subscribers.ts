// Subscribers: who gets what is delivered. A secret is in the answer that makes it, and nowhere else.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { attempt, id, moment, NOTHING, PAGE, tenant } from '../schemas.ts'
import { missing } from './missing.ts'

const TAG = 'subscribers'
const PATH = '/v1/webhooks/subscribers'
const ONE = z.strictObject({ id })

const SIGNING = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('standard') }),
  z.strictObject({
    kind: z.literal('hmac'),
    header: z.string().max(100),
    encoding: z.enum(['hex', 'base64']),
    prefix: z.string().max(100).default(''),
  }),
  z.strictObject({ kind: z.literal('bearer') }),
])

const FIELDS = {
  name: z.string().max(1_024),
  url: z.string().max(2_048).meta({ example: 'https://example.com/hook' }),
  eventFilter: z.array(z.string().max(256)).min(1).max(100).meta({ description: 'Globs over types of events.' }),
  description: z.string().max(1_024),
  headers: z.record(z.string(), z.string()).meta({ description: 'Sent along with each batch.' }),
  signing: SIGNING,
  form: z.enum(['standard', 'events']).meta({
    description: '`standard`: `{ type, timestamp, data: { events } }`; `events`: `{ events }`.',
  }),
} as const

const SUBSCRIBER = z.strictObject({
  id: z.string(),
  ...FIELDS,
  tenant,
  createdAt: moment,
  active: z.boolean().meta({ description: 'False: paused, and its events wait.' }),
})
const WITH_SECRET = SUBSCRIBER.extend({ secret: z.string() })
const secret = z.string().max(1_500).meta({ description: 'At least 16 bytes, or `whsec_` and base64.' })

const DELIVERY = z.strictObject({
  id: z.string(),
  delivery: z.string(),
  status: z.enum(['PENDING', 'DELIVERING', 'SUCCESS', 'FAILED']),
  events: z.int().meta({ description: 'How many are in it.' }),
  attemptCount: z.int(),
  createdAt: moment,
  deliveredAt: moment.optional(),
  nextRetryAt: moment.optional(),
  lastError: z.string().meta({ description: 'Empty: there was none.' }),
  attempts: z.array(attempt).meta({ description: 'Those that failed.' }),
})

export const subscribers: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: PATH,
    name: 'listSubscribers',
    tag: TAG,
    summary: 'All of them, the oldest first.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(SUBSCRIBER) }),
    handle: async (app) => ({ items: [...(await app.endpoints.list())].map(plain) }),
  }),
  route({
    method: 'POST',
    path: PATH,
    name: 'registerSubscriber',
    tag: TAG,
    summary: 'The answer has the secret, given or made: it is shown now, and never again.',
    role: 'operate',
    params: NOTHING,
    query: NOTHING,
    body: z.strictObject({
      ...z.strictObject(FIELDS).partial().shape,
      url: FIELDS.url,
      tenant: tenant.optional(),
      secret: secret.optional(),
    }),
    answer: WITH_SECRET,
    audited: 'in its commit',
    handle: async (app, { body, who }) => plain(await app.endpoints.add(given(body), who)),
  }),
  route({
    method: 'GET',
    path: `${PATH}/{id}`,
    name: 'showSubscriber',
    tag: TAG,
    summary: 'One of them.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: SUBSCRIBER,
    handle: async (app, { params }) => {
      const found = await app.endpoints.get(params.id)
      if (found === undefined) throw missing('subscriber', params.id)
      return plain(found)
    },
  }),
  route({
    method: 'GET',
    path: `${PATH}/{id}/deliveries`,
    name: 'listDeliveries',
    tag: TAG,
    summary: 'What is under way to it, then what has ended, the newest first.',
    role: 'read',
    params: ONE,
    query: z.strictObject({ limit: PAGE.limit }),
    body: NOTHING,
    answer: z.strictObject({ items: z.array(DELIVERY) }),
    handle: async (app, { params, query }) => ({
      items: (await app.endpoints.deliveries(params.id, query.limit)).map((one) => ({
        ...one,
        attempts: [...one.attempts],
      })),
    }),
  }),
  route({
    method: 'PATCH',
    path: `${PATH}/{id}`,
    name: 'changeSubscriber',
    tag: TAG,
    summary: 'What is not named stays as it is.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: z.strictObject(FIELDS).partial(),
    answer: SUBSCRIBER,
    audited: 'in its commit',
    handle: async (app, { params, body, who }) => plain(await app.endpoints.change(params.id, given(body), who)),
  }),
  route({
    method: 'DELETE',
    path: `${PATH}/{id}`,
    name: 'removeSubscriber',
    tag: TAG,
    summary: 'What waits for it is dropped; the answer says how many events that were.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ dropped: z.int() }),
    audited: 'in its commit',
    handle: (app, { params, who }) => app.endpoints.remove(params.id, who),
  }),
  route({
    method: 'POST',
    path: `${PATH}/{id}/rotate-secret`,
    name: 'rotateSubscriberSecret',
    tag: TAG,
    summary: 'The new secret and the one before both sign for a day.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: z.strictObject({
      secret: secret.optional(),
      force: z.boolean().optional().meta({ description: 'Ends a rotation that is under way.' }),
    }),
    answer: WITH_SECRET,
    audited: 'in its commit',
    handle: async (app, { params, body, who }) =>
      plain(await app.endpoints.rotateSecret(params.id, { ...given(body), by: who })),
  }),
  route({
    method: 'POST',
    path: '/v1/webhooks/trigger',
    name: 'triggerDeliveries',
    tag: TAG,
    summary: 'Every open window is over now; neither backoff nor a pause is skipped.',
    role: 'operate',
    status: 202,
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ triggered: z.int().meta({ description: 'How many batches are due by that.' }) }),
    audited: () => 'trigger all deliveries',
    handle: (app) => app.endpoints.trigger(),
  }),
  ...(['pause', 'resume'] as const).map((act) =>
    route({
      method: 'POST',
      path: `${PATH}/{id}/${act}`,
      name: `${act}Subscriber`,
      tag: TAG,
      summary: act === 'pause' ? 'Its events wait.' : 'What waits is due at once, also after it was disabled.',
      role: 'operate',
      params: ONE,
      query: NOTHING,
      body: NOTHING,
      answer: SUBSCRIBER,
      audited: 'in its commit',
      handle: async (app, { params, who }) => plain(await app.endpoints[act](params.id, who)),
    }),
  ),
]

/** As the answer has it: lists that may be written to. */
function plain<
  E extends { readonly eventFilter: readonly string[]; readonly headers: Readonly<Record<string, string>> },
>(endpoint: E): Omit<E, 'eventFilter' | 'headers'> & { eventFilter: string[]; headers: Record<string, string> } {
  return { ...endpoint, eventFilter: [...endpoint.eventFilter], headers: { ...endpoint.headers } }
}

/** A field that is there and undefined would take the place of what is said otherwise. */
function given<B extends object>(body: B): { [K in keyof B]: Exclude<B[K], undefined> } {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as never
}
