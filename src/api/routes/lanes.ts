// Routes of lanes: their state, explanation and actions. Paths use lane ids, because a key can be 16 KB of anything.
import { z } from 'zod'
import { SluiceError } from '../../errors.ts'
import type { OperatorLaneAction, SteerResult } from '../../admin/lanes.ts'
import type { ApiTarget } from '../api-target.ts'
import { route, type ApiRoute } from '../route.ts'
import { laneKey, name, NO_FIELDS, PAGE_QUERY, pageOf, steerResult, tenant } from '../schemas.ts'
import { duration, reason } from './action-schemas.ts'
import { explanation } from './explanation.ts'
import { lane, laneId } from './lane-schemas.ts'
import { notFound } from './not-found.ts'

const TAG = 'lanes'
const LANE_PARAMS = z.strictObject({ id: laneId })

const SIMPLE_ACTIONS = {
  'run-now': {
    name: 'runLaneNow',
    summary: 'Makes a lane due now: ends its window, or its wait for the next attempt.',
    act: 'run at once',
  },
  cancel: {
    name: 'cancelLane',
    summary: 'Asks the run of a lane to cancel; its events wait again.',
    act: 'cancel the run of',
  },
  drop: { name: 'dropLane', summary: 'Drops the waiting events of a lane without a run.', act: 'drop what waits in' },
  unhold: { name: 'unholdLane', summary: 'Ends the hold of a lane.', act: 'end the hold of' },
} as const

export const lanes: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/lanes',
    name: 'listLanes',
    tag: TAG,
    summary: 'Lists lanes, newest first. An empty lane does not exist and is not listed.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({
      flow: name.exactOptional(),
      key: laneKey.exactOptional().meta({ description: 'Requires `flow`.' }),
      tenant: tenant.exactOptional(),
      ...PAGE_QUERY,
    }),
    body: NO_FIELDS,
    response: pageOf(lane),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.admin.lanes.search(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}',
    name: 'showLane',
    tag: TAG,
    summary: 'Returns a lane with its run and its hold.',
    role: 'read',
    params: LANE_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: lane,
    handle: (app, { params }) => findLane(app, params.id),
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}/explain',
    name: 'explainLane',
    tag: TAG,
    summary: 'Explains in one sentence where the events of a lane are and what they wait for, with the facts.',
    role: 'read',
    params: LANE_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: explanation,
    handle: async (app, { params }) => {
      const { flow, key } = await findLane(app, params.id)
      return app.explain(flow, key)
    },
  }),
  route({
    method: 'GET',
    path: '/v1/explain',
    name: 'explain',
    tag: TAG,
    summary: 'Explains a lane by flow and key, even if it no longer exists or never did.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({ flow: name, key: laneKey }),
    body: NO_FIELDS,
    response: explanation,
    handle: (app, { query }) => app.explain(query.flow, query.key),
  }),
  ...(['run-now', 'cancel', 'drop', 'unhold'] as const).map((act) =>
    route({
      method: 'POST',
      path: `/v1/lanes/{id}/${act}`,
      name: SIMPLE_ACTIONS[act].name,
      tag: TAG,
      summary: SIMPLE_ACTIONS[act].summary,
      role: 'operate',
      params: LANE_PARAMS,
      query: NO_FIELDS,
      body: NO_FIELDS,
      response: steerResult,
      auditText: ({ params }) => `${SIMPLE_ACTIONS[act].act} the lane ${params.id}`,
      handle: async (app, { params }) => ({ result: await steerLane(app, params.id, { kind: act }) }),
    }),
  ),
  route({
    method: 'POST',
    path: '/v1/lanes/{id}/hold',
    name: 'holdLane',
    tag: TAG,
    summary: 'Holds a lane: no run starts until the hold ends. Events still arrive and windows still end.',
    role: 'operate',
    params: LANE_PARAMS,
    query: NO_FIELDS,
    body: z.strictObject({
      reason,
      for: duration.exactOptional().meta({ description: 'Default: until an operator ends the hold.' }),
    }),
    response: steerResult,
    auditText: ({ params, body }) => `hold the lane ${params.id}: ${body.reason}`,
    handle: async (app, { params, body, actor: who }) => {
      return { result: await steerLane(app, params.id, { kind: 'hold', by: who, ...body }) }
    },
  }),
]

async function findLane(app: ApiTarget, id: string): Promise<{ readonly flow: string; readonly key: string }> {
  const found = await app.admin.lanes.show(id)
  if (found === undefined) throw notFound('lane', id)
  return found
}

/** A lane that exists but has no run gives a conflict instead of a 404. */
async function steerLane(app: ApiTarget, id: string, act: OperatorLaneAction): Promise<SteerResult> {
  const result = await app.admin.lanes.steer(id, act)
  if (result !== 'missing') return result
  await findLane(app, id)
  throw new SluiceError('CONFLICT', 'The lane has no run that can be cancelled.')
}
