// Routes of actions on a registered endpoint: test, verify, retry, replay, pause, resume, enable, create a token.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { countResult, id, NO_FIELDS } from '../schemas.ts'
import { notFound } from './not-found.ts'
import {
  ENABLE_RESULT,
  ID_PARAMS,
  SUBSCRIBERS_PATH,
  PROOF_RESULT,
  SUBSCRIBER,
  TAG,
  TEST_RESULT,
} from './subscriber-schemas.ts'

export const subscriberActions: readonly ApiRoute[] = [
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/test`,
    name: 'testSubscriber',
    tag: TAG,
    summary: 'Sends a signed test event to this endpoint only, and returns the outcome.',
    role: 'operate',
    allowsOwnToken: true,
    rateLimited: 'tests',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: TEST_RESULT,
    auditText: ({ params }) => `test the subscriber ${params.id}`,
    handle: (app, { params }) => app.endpoints.test(params.id),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/prove`,
    name: 'proveSubscriber',
    tag: TAG,
    summary: 'Asks an endpoint to prove its ownership, as at its registration.',
    role: 'operate',
    rateLimited: 'registrations',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: PROOF_RESULT,
    auditText: ({ params }) => `prove the subscriber ${params.id}`,
    handle: (app, { params, actor: who }) => app.endpoints.prove(params.id, who),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/replay`,
    name: 'replaySubscriber',
    tag: TAG,
    summary: 'Retries the dead letters of an endpoint, before its waiting events.',
    role: 'operate',
    allowsOwnToken: true,
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: z.strictObject({
      letter: id.exactOptional().meta({ description: 'One dead letter of the endpoint. Default: all.' }),
    }),
    response: countResult,
    auditText: ({ params, body: { letter } }) => `replay ${letter ?? 'all'} to the subscriber ${params.id}`,
    handle: (app, { params, body }) => app.endpoints.replay(params.id, body),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/token`,
    name: 'makeSubscriberToken',
    tag: TAG,
    summary:
      'Creates the token of an endpoint, for its deliveries, test, replay and rotation. It is shown once and replaces the old one.',
    role: 'operate',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ token: z.string() }),
    auditText: 'in its commit',
    handle: (app, { params, actor: who }) => app.endpoints.createToken(params.id, who),
  }),
  route({
    method: 'DELETE',
    path: `${SUBSCRIBERS_PATH}/{id}/token`,
    name: 'revokeSubscriberToken',
    tag: TAG,
    summary: 'Revokes the token of an endpoint.',
    role: 'operate',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ result: z.literal('ok') }),
    auditText: 'in its commit',
    handle: async (app, { params, actor: who }) => {
      const result = await app.endpoints.revokeToken(params.id, who)
      if (result === 'missing') throw notFound('token of a subscriber', params.id)
      return { result }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/webhooks/trigger',
    name: 'triggerDeliveries',
    tag: TAG,
    summary: 'Ends every open window of deliveries now. Backoffs and pauses still apply.',
    role: 'operate',
    status: 202,
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ triggered: z.int().meta({ description: 'How many batches are due as a result.' }) }),
    auditText: () => 'trigger all deliveries',
    handle: (app) => app.endpoints.trigger(),
  }),
  route({
    method: 'POST',
    path: `${SUBSCRIBERS_PATH}/{id}/enable`,
    name: 'enableSubscriber',
    tag: TAG,
    summary: 'Enables a disabled endpoint; its waiting events are delivered or dropped.',
    role: 'operate',
    params: ID_PARAMS,
    query: NO_FIELDS,
    body: z.strictObject({
      from: z
        .enum(['backlog', 'now'])
        .meta({ description: '`backlog` delivers the waiting events at once; `now` drops them.' }),
    }),
    response: ENABLE_RESULT,
    auditText: 'in its commit',
    handle: (app, { params, body, actor: who }) => app.endpoints.enable(params.id, { ...body, by: who }),
  }),
  ...(['pause', 'resume'] as const).map((act) =>
    route({
      method: 'POST',
      path: `${SUBSCRIBERS_PATH}/{id}/${act}`,
      name: `${act}Subscriber`,
      tag: TAG,
      summary:
        act === 'pause'
          ? 'Pauses an endpoint: its events wait.'
          : 'Resumes a paused endpoint; its waiting events are due at once.',
      role: 'operate',
      params: ID_PARAMS,
      query: NO_FIELDS,
      body: NO_FIELDS,
      response: SUBSCRIBER,
      auditText: 'in its commit',
      handle: (app, { params, actor: who }) => app.endpoints[act](params.id, who),
    }),
  ),
]
