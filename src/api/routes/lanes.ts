// Lanes: where each is, why, and what a person can do to one. They go by their ids, for keys can be 16 KB of anything.
import { z } from 'zod'
import { SluiceError } from '../../errors.ts'
import type { LaneAct, Steered } from '../../operate/lanes.ts'
import type { Operated } from '../operated.ts'
import { route, type ApiRoute } from '../route.ts'
import { laneKey, name, NOTHING, PAGE, pageOf, steered, tenant } from '../schemas.ts'
import { duration, reason } from './acts.ts'
import { explanation } from './explanation.ts'
import { lane, laneId } from './lane-schemas.ts'
import { missing } from './missing.ts'

const TAG = 'lanes'
const ONE = z.strictObject({ id: laneId })

const PLAIN = {
  'run-now': {
    name: 'runLaneNow',
    summary: 'Its window is over, and so is its wait for another attempt.',
    act: 'run at once',
  },
  cancel: {
    name: 'cancelLane',
    summary: 'Asks its run to give up; the events wait again.',
    act: 'cancel the run of',
  },
  drop: { name: 'dropLane', summary: 'What waits in it ends here, without a run.', act: 'drop what waits in' },
  unhold: { name: 'unholdLane', summary: 'Ends the hold.', act: 'end the hold of' },
} as const

export const lanes: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/lanes',
    name: 'listLanes',
    tag: TAG,
    summary: 'Newest first. A lane with nothing in it is gone, and not listed.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({
      flow: name.exactOptional(),
      key: laneKey.exactOptional().meta({ description: 'Together with flow.' }),
      tenant: tenant.exactOptional(),
      ...PAGE,
    }),
    body: NOTHING,
    answer: pageOf(lane),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.lanes.search(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}',
    name: 'showLane',
    tag: TAG,
    summary: 'One, with its run and its hold.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: lane,
    handle: (app, { params }) => laneNamed(app, params.id),
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}/explain',
    name: 'explainLane',
    tag: TAG,
    summary: 'One true sentence on where its events are and what they wait for, with the figures.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: explanation,
    handle: async (app, { params }) => {
      const { flow, key } = await laneNamed(app, params.id)
      return app.explain(flow, key)
    },
  }),
  route({
    method: 'GET',
    path: '/v1/explain',
    name: 'explain',
    tag: TAG,
    summary: 'The same by flow and key, also of a lane that is gone or never was.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({ flow: name, key: laneKey }),
    body: NOTHING,
    answer: explanation,
    handle: (app, { query }) => app.explain(query.flow, query.key),
  }),
  ...(['run-now', 'cancel', 'drop', 'unhold'] as const).map((act) =>
    route({
      method: 'POST',
      path: `/v1/lanes/{id}/${act}`,
      name: PLAIN[act].name,
      tag: TAG,
      summary: PLAIN[act].summary,
      role: 'operate',
      params: ONE,
      query: NOTHING,
      body: NOTHING,
      answer: steered,
      audited: ({ params }) => `${PLAIN[act].act} the lane ${params.id}`,
      handle: async (app, { params }) => ({ result: await steeredTo(app, params.id, { kind: act }) }),
    }),
  ),
  route({
    method: 'POST',
    path: '/v1/lanes/{id}/hold',
    name: 'holdLane',
    tag: TAG,
    summary: 'Nothing of it is begun until the hold ends; arrivals and windows go on.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: z.strictObject({
      reason,
      for: duration.exactOptional().meta({ description: 'Until somebody ends it, unless said.' }),
    }),
    answer: steered,
    audited: ({ params, body }) => `hold the lane ${params.id}: ${body.reason}`,
    handle: async (app, { params, body, who }) => {
      return { result: await steeredTo(app, params.id, { kind: 'hold', by: who, ...body }) }
    },
  }),
]

async function laneNamed(app: Operated, id: string): Promise<{ readonly flow: string; readonly key: string }> {
  const found = await app.lanes.show(id)
  if (found === undefined) throw missing('lane', id)
  return found
}

/** A lane without a run cannot be cancelled, though it is there. */
async function steeredTo(app: Operated, id: string, act: LaneAct): Promise<Steered> {
  const result = await app.lanes.steer(id, act)
  if (result !== 'missing') return result
  await laneNamed(app, id)
  throw new SluiceError('NOT_POSSIBLE', 'Nothing of the lane runs just now.')
}
