// Routes of lanes and flows: their state, explanation and actions. Paths use lane ids, because a key can be 16 KB of
// anything.
import { z } from 'zod'
import { SluiceError } from '../../errors.ts'
import type { LaneView } from '../../admin/lane-view.ts'
import type { OperatorLaneAction, SteerResult } from '../../admin/lanes.ts'
import { orNotFound, orSuggest, route, withTag, type ApiRoute, type ApiTarget } from '../route.ts'
import {
  attempt,
  duration,
  flowPause,
  LANE_FILTER,
  laneId,
  laneKey,
  laneCounts,
  laneState,
  name,
  PAGE_QUERY,
  pageOf,
  reason,
  shownLaneStates,
  steerResult,
  timestamp,
} from '../schemas.ts'
import { explanation } from './explanation.ts'
import { PAST_RUN } from './runs.ts'

/** The run of a lane. */
export const LANE_RUN: z.ZodType = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'retrying', 'snoozed']),
  started: timestamp,
  until: timestamp.meta({ description: 'When its lease ends, or the next attempt is due.' }),
  events: z.int(),
  bytes: z.int(),
  tries: z.int(),
  lapses: z.int(),
  cancel: z.boolean().meta({ description: 'Whether the run was asked to cancel.' }),
  attempts: z.array(attempt),
})

const LANE = z.strictObject({
  id: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  state: laneState,
  due: timestamp
    .optional()
    .meta({ description: 'When the lane is due, past or future. Missing if it has no deadline.' }),
  waiting: z.int().meta({ description: 'Waiting live events, without those of the run.' }),
  bytes: z.int().meta({ description: 'The size of the waiting events.' }),
  replays: z.int().meta({ description: 'Waiting replayed events.' }),
  queued: z.int().meta({ description: 'Dead letters that an operator retried and that wait to run.' }),
  blocks: z.int().meta({ description: 'Dead letters that block the lane.' }),
  hold: z.strictObject({ reason: z.string(), by: z.string(), until: timestamp.optional() }).optional(),
  run: LANE_RUN.optional(),
  window: timestamp.optional().meta({ description: 'When the window of the waiting events ends.' }),
  cap: timestamp.optional().meta({ description: 'The time beyond which no event can move the window.' }),
  deferredBy: z.string().optional().meta({ description: 'The limit that deferred the run.' }),
  rank: z.int().min(1).optional().meta({ description: 'Its place among the lanes of its flow in line: 1 is next.' }),
  waitsFor: z
    .strictObject({ limit: z.string(), in: z.number() })
    .optional()
    .meta({ description: 'The limit for whose slot the run waits in this process, and for how many milliseconds.' }),
  arrivals: z
    .array(z.strictObject({ at: timestamp, inRun: z.boolean() }))
    .max(16)
    .optional()
    .meta({ description: 'Of the first events that run or wait. Missing with a `limit` above 100.' }),
})

const DETAILS = LANE.extend({
  events: z
    .array(
      z.strictObject({
        id: z.string(),
        at: timestamp,
        type: z.string(),
        subject: z.string(),
        source: z.string(),
        bytes: z.int(),
        inRun: z.boolean(),
      }),
    )
    .max(100)
    .meta({ description: 'The first events of the run, then those that wait.' }),
  flowOptions: z
    .strictObject({
      window: z.strictObject({ quiet: z.number().optional(), max: z.number().optional() }).optional(),
      windowText: z.string(),
      maxEvents: z.number().optional(),
      maxBytes: z.number().optional(),
      whileRunning: z.string().optional(),
      concurrency: z.int().optional(),
      attempts: z.int(),
      timeoutMs: z.number().optional(),
      onDead: z.string(),
      take: z.string(),
      retryDelays: z.array(z.number()).max(20),
      delivery: z.boolean(),
    })
    .optional()
    .meta({ description: 'Missing if this app does not declare the flow. An unbounded option is missing.' }),
  slots: z
    .strictObject({ used: z.int(), of: z.int() })
    .optional()
    .meta({ description: 'The live runs of the flow, if it has a `concurrency`.' }),
  medianRunMs: z.number().optional(),
  lastRuns: z.array(PAST_RUN),
})

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

export const lanes: readonly ApiRoute[] = withTag('lanes', [
  route({
    method: 'GET',
    path: '/v1/lanes',
    name: 'listLanes',
    summary: 'Lists lanes, newest first, or by what happens next. An empty lane does not exist and is not listed.',
    query: z.strictObject({
      ...LANE_FILTER,
      state: shownLaneStates.exactOptional(),
      q: z.string().min(1).max(256).exactOptional().meta({ description: 'A text in the key, ignoring case.' }),
      order: z.enum(['due', 'newest']).exactOptional().meta({
        description: '`due`: lanes in line, then running ones, then by deadline; blocked and held ones last.',
      }),
      ...PAGE_QUERY,
    }),
    response: pageOf(LANE).extend({
      counts: laneCounts.partial().optional().meta({
        description: 'With `state`, `q` or `order`: how many lanes match in each state, whatever `state` says.',
      }),
      exact: z.boolean().optional().meta({ description: 'False above 20,000 lanes: only these were read.' }),
    }),
    handle: (app, { query: { cursor, limit, state, ...filter } }) =>
      app.admin.lanes.search({ ...filter, ...(state !== undefined && { states: state }) }, cursor, limit),
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}',
    name: 'showLane',
    summary: 'Returns a lane with its run and its hold, its events, the options of its flow, and its last runs.',
    params: LANE_PARAMS,
    response: DETAILS,
    handle: async (app, { params }) => orNotFound(await app.admin.lanes.details(params.id), 'lane', params.id),
  }),
  route({
    method: 'GET',
    path: '/v1/lanes/{id}/explain',
    name: 'explainLane',
    summary: 'Explains in one sentence where the events of a lane are and what they wait for, with the facts.',
    params: LANE_PARAMS,
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
    summary: 'Explains a lane by flow and key, even if it no longer exists or never did.',
    query: z.strictObject({ flow: name, key: laneKey }),
    response: explanation,
    handle: (app, { query }) => app.explain(query.flow, query.key),
  }),
  ...(['run-now', 'cancel', 'drop', 'unhold'] as const).map((act) =>
    route({
      method: 'POST',
      path: `/v1/lanes/{id}/${act}`,
      name: SIMPLE_ACTIONS[act].name,
      summary: SIMPLE_ACTIONS[act].summary,
      params: LANE_PARAMS,
      response: steerResult,
      auditText: ({ params }) => `${SIMPLE_ACTIONS[act].act} the lane ${params.id}`,
      handle: async (app, { params }) => ({ result: await steerLane(app, params.id, { kind: act }) }),
    }),
  ),
  route({
    method: 'POST',
    path: '/v1/lanes/{id}/hold',
    name: 'holdLane',
    summary: 'Holds a lane: no run starts until the hold ends. Events still arrive and windows still end.',
    params: LANE_PARAMS,
    body: z.strictObject({
      reason,
      for: duration.exactOptional().meta({ description: 'Default: until an operator ends the hold.' }),
    }),
    response: steerResult,
    auditText: ({ params, body }) => `hold the lane ${params.id}: ${body.reason}`,
    handle: async (app, { params, body, actor }) => ({
      result: await steerLane(app, params.id, { kind: 'hold', by: actor, ...body }),
    }),
  }),
])

async function findLane(app: ApiTarget, id: string): Promise<LaneView> {
  return orNotFound(await app.admin.lanes.show(id), 'lane', id)
}

/** A lane that exists but has no run gives a conflict instead of a 404. */
async function steerLane(app: ApiTarget, id: string, act: OperatorLaneAction): Promise<SteerResult> {
  const result = await app.admin.lanes.steer(id, act)
  if (result !== 'missing') return result
  await findLane(app, id)
  throw new SluiceError('CONFLICT', 'The lane has no run that can be cancelled.')
}

const FLOW = z.strictObject({
  flow: z.string(),
  lanes: z.int().meta({ description: 'Lanes with a deadline, counted up to a bound of at least 10,000.' }),
  live: z.int().meta({ description: 'Runs in progress.' }),
  due: timestamp.optional().meta({ description: 'The next deadline, past or future.' }),
  paused: flowPause.optional(),
})

const FLOW_PARAMS = z.strictObject({ flow: name })

export const flows: readonly ApiRoute[] = withTag('flows', [
  route({
    method: 'GET',
    path: '/v1/flows',
    name: 'listFlows',
    summary: 'Lists all flows with their backlog.',
    response: z.strictObject({ items: z.array(FLOW) }),
    handle: async (app) => ({ items: await app.admin.flows.list() }),
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/pause',
    name: 'pauseFlow',
    summary: 'Pauses a flow: no run starts. Events still arrive and windows still end.',
    params: FLOW_PARAMS,
    body: z.strictObject({ reason }),
    response: steerResult,
    auditText: ({ params, body }) => `pause the flow ${params.flow}: ${body.reason}`,
    handle: async (app, { params, body, actor }) => ({
      result: await orSuggestFlow(
        app,
        await app.admin.flows.pause(params.flow, { reason: body.reason, by: actor }),
        params.flow,
      ),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/resume',
    name: 'resumeFlow',
    summary: 'Resumes a flow; ready lanes run again.',
    params: FLOW_PARAMS,
    response: steerResult,
    auditText: ({ params }) => `resume the flow ${params.flow}`,
    handle: async (app, { params, actor }) => ({
      result: await orSuggestFlow(app, await app.admin.flows.resume(params.flow, actor), params.flow),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/retire',
    name: 'retireFlow',
    summary:
      'Retires a flow that was removed or renamed: no more events are kept for it, and its unrouted events are dropped. ' +
      'The result is `running` if a process has served the flow within the last minute.',
    params: FLOW_PARAMS,
    response: steerResult,
    auditText: ({ params }) => `retire the flow ${params.flow}`,
    handle: async (app, { params, actor }) => ({
      result: await orSuggestFlow(app, await app.admin.flows.retire(params.flow, actor), params.flow),
    }),
  }),
])

function orSuggestFlow<T>(app: ApiTarget, result: T, flow: string): Promise<Exclude<T, undefined | 'missing'>> {
  return orSuggest(result, 'flow', flow, async () => (await app.admin.flows.list()).map((one) => one.flow))
}
