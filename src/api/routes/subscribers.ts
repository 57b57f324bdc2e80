// Routes of endpoints, which the API calls subscribers. Only the response that creates a secret contains it.
import { z } from 'zod'
import { SluiceError } from '../../errors.ts'
import type { NewEndpoint } from '../../deliver/endpoint.ts'
import type { EndpointReplay } from '../../deliver/endpoint-replay.ts'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import { PAGE_QUERY } from '../schemas.ts'
import {
  DELIVERY,
  ENABLE_RESULT,
  ENDPOINT_REPLAY,
  ENDPOINT_REPLAY_RESULT,
  ENDPOINT_STATS,
  ID_PARAMS,
  NEW_SUBSCRIBER,
  PROOF_RESULT,
  ROTATION,
  STATS_HOURS,
  SUBSCRIBER,
  SUBSCRIBER_UPDATE,
  SUBSCRIBER_WITH_HEALTH,
  SUBSCRIBER_WITH_SECRET,
  SUBSCRIBERS_PATH,
  TEST_RESULT,
} from './subscriber-schemas.ts'

/** One tenant must not use up the endpoints of all. */
const MOST_OF_KEY_TENANT = 100

function forTenant(input: NewEndpoint, tenant: string): NewEndpoint {
  if (input.tenant === undefined || input.tenant === tenant) return { ...input, tenant }
  const text = `The key registers endpoints of the tenant ${JSON.stringify(tenant)} only; got ${JSON.stringify(input.tenant)}.`
  throw new SluiceError('TENANT_NOT_ALLOWED', text)
}

function describeReplay({ deadLetter, ...range }: EndpointReplay): string {
  return deadLetter ?? (Object.keys(range).length === 0 ? 'all' : JSON.stringify(range))
}

export const subscribers: readonly ApiRoute[] = withTag('subscribers', [
  route({
    method: 'GET',
    path: SUBSCRIBERS_PATH,
    name: 'listSubscribers',
    summary: 'Lists all endpoints with their health, oldest first.',
    response: z.strictObject({ items: z.array(SUBSCRIBER_WITH_HEALTH) }),
    handle: async (app) => ({ items: await app.endpoints.list() }),
  }),
  route({
    method: 'POST',
    path: SUBSCRIBERS_PATH,
    name: 'registerSubscriber',
    summary: 'Registers an endpoint. The response contains the secret, which is shown once.',
    rateLimited: 'registrations',
    body: NEW_SUBSCRIBER,
    response: SUBSCRIBER_WITH_SECRET,
    auditText: 'in its commit',
    role: 'register',
    handle: (app, { body, actor, keyTenant }) =>
      keyTenant === undefined
        ? app.endpoints.create(body, actor)
        : app.endpoints.create(forTenant(body, keyTenant), actor, { mostOfTenant: MOST_OF_KEY_TENANT }),
  }),
  route({
    method: 'GET',
    path: `${SUBSCRIBERS_PATH}/{id}`,
    name: 'showSubscriber',
    summary: 'Returns an endpoint with its health.',
    params: ID_PARAMS,
    response: SUBSCRIBER_WITH_HEALTH,
    handle: async (app, { params }) => orNotFound(await app.endpoints.get(params.id), 'endpoint', params.id),
  }),
  route({
    method: 'GET',
    path: `${SUBSCRIBERS_PATH}/{id}/deliveries`,
    name: 'listDeliveries',
    summary: 'Lists the deliveries to an endpoint: first those in progress, then those that ended, newest first.',
    allowsOwnToken: true,
    params: ID_PARAMS,
    query: z.strictObject({ limit: PAGE_QUERY.limit }),
    response: z.strictObject({ items: z.array(DELIVERY) }),
    handle: async (app, { params, query }) => ({ items: await app.endpoints.deliveries(params.id, query.limit) }),
  }),
  route({
    method: 'GET',
    path: `${SUBSCRIBERS_PATH}/{id}/stats`,
    name: 'showSubscriberStats',
    summary: 'Returns how the POSTs to an endpoint went in the last hours, with percentiles, and what waits for it.',
    params: ID_PARAMS,
    query: z.strictObject({ hours: STATS_HOURS }),
    response: ENDPOINT_STATS,
    handle: (app, { params, query }) => app.endpoints.stats(params.id, query),
  }),
  route({
    method: 'PATCH',
    path: `${SUBSCRIBERS_PATH}/{id}`,
    name: 'changeSubscriber',
    summary: 'Changes the given fields of an endpoint. `active` pauses or resumes it; `secret` is rotated in.',
    // A new URL must be verified, so changing it counts as a registration.
    rateLimited: ({ body }) => (body.url === undefined ? undefined : 'registrations'),
    params: ID_PARAMS,
    body: SUBSCRIBER_UPDATE,
    response: SUBSCRIBER,
    auditText: 'in its commit',
    handle: (app, { params, body, actor }) => app.endpoints.update(params.id, body, actor),
  }),
  route({
    method: 'DELETE',
    path: `${SUBSCRIBERS_PATH}/{id}`,
    name: 'removeSubscriber',
    summary: 'Deletes an endpoint and drops its waiting events; returns how many.',
    params: ID_PARAMS,
    response: z.strictObject({ dropped: z.int() }),
    auditText: 'in its commit',
    handle: (app, { params, actor }) => app.endpoints.delete(params.id, actor),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/rotate-secret`,
    name: 'rotateSubscriberSecret',
    summary: 'Replaces the secret. The old one stays valid for a day, or ends at once with `force`.',
    allowsOwnToken: true,
    params: ID_PARAMS,
    body: ROTATION,
    response: SUBSCRIBER_WITH_SECRET,
    auditText: 'in its commit',
    handle: (app, { params, body, actor }) => app.endpoints.rotateSecret(params.id, { ...body, by: actor }),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/test`,
    name: 'testSubscriber',
    summary: 'Sends a signed test event to this endpoint only, and returns the outcome.',
    allowsOwnToken: true,
    rateLimited: 'tests',
    params: ID_PARAMS,
    response: TEST_RESULT,
    auditText: ({ params }) => `test the subscriber ${params.id}`,
    handle: (app, { params }) => app.endpoints.test(params.id),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/prove`,
    name: 'proveSubscriber',
    summary: 'Asks an endpoint to prove its ownership, as at its registration.',
    rateLimited: 'registrations',
    params: ID_PARAMS,
    response: PROOF_RESULT,
    auditText: ({ params }) => `prove the subscriber ${params.id}`,
    handle: (app, { params, actor }) => app.endpoints.prove(params.id, actor),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/replay`,
    name: 'replaySubscriber',
    summary: 'Retries dead letters of an endpoint, or sends it stored events again (with `from`, `to` or `type`).',
    allowsOwnToken: true,
    params: ID_PARAMS,
    body: ENDPOINT_REPLAY,
    response: ENDPOINT_REPLAY_RESULT,
    auditText: ({ params, body }) => `replay ${describeReplay(body)} to the subscriber ${params.id}`,
    handle: (app, { params, body }) => app.endpoints.replay(params.id, body),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/token`,
    name: 'makeSubscriberToken',
    summary:
      'Creates the token of an endpoint, for its deliveries, test, replay and rotation. It is shown once and replaces the old one.',
    params: ID_PARAMS,
    response: z.strictObject({ token: z.string() }),
    auditText: 'in its commit',
    handle: (app, { params, actor }) => app.endpoints.createToken(params.id, actor),
  }),
  route({
    method: 'DELETE',
    path: `${SUBSCRIBERS_PATH}/{id}/token`,
    name: 'revokeSubscriberToken',
    summary: 'Revokes the token of an endpoint.',
    params: ID_PARAMS,
    response: z.strictObject({ result: z.literal('ok') }),
    auditText: 'in its commit',
    handle: async (app, { params, actor }) => ({
      result: orNotFound(await app.endpoints.revokeToken(params.id, actor), 'token of endpoint', params.id),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/webhooks/trigger',
    name: 'triggerDeliveries',
    summary: 'Ends every open window of deliveries now. Backoffs and pauses still apply.',
    status: 202,
    response: z.strictObject({ triggered: z.int().meta({ description: 'How many batches are due as a result.' }) }),
    auditText: () => 'trigger all deliveries',
    handle: (app) => app.endpoints.trigger(),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/enable`,
    name: 'enableSubscriber',
    summary: 'Enables a disabled endpoint; its waiting events are delivered or dropped.',
    params: ID_PARAMS,
    body: z.strictObject({
      from: z
        .enum(['backlog', 'now'])
        .meta({ description: '`backlog` delivers the waiting events at once; `now` drops them.' }),
    }),
    response: ENABLE_RESULT,
    auditText: 'in its commit',
    handle: (app, { params, body, actor }) => app.endpoints.enable(params.id, { ...body, by: actor }),
  }),
  ...(['pause', 'resume'] as const).map((act) =>
    route({
      method: 'POST',
      path: `${SUBSCRIBERS_PATH}/{id}/${act}`,
      name: `${act}Subscriber`,
      summary:
        act === 'pause'
          ? 'Pauses an endpoint: its events wait.'
          : 'Resumes a paused endpoint; its waiting events are due at once.',
      params: ID_PARAMS,
      response: SUBSCRIBER,
      auditText: 'in its commit',
      handle: (app, { params, actor }) => app.endpoints[act](params.id, actor),
    }),
  ),
])
