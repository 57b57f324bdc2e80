// Routes of ended runs with their attempts. A run that has not ended is part of its lane.
import { z } from 'zod'
import type { RunRecord } from '../../store/contract/index.ts'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import { attempt, id, LANE_FILTER, laneId, PAGE_QUERY, pageOf, TIME_RANGE, timestamp } from '../schemas.ts'

export const runKind: z.ZodType<RunRecord['kind']> = z.enum([
  'done',
  'partial',
  'dead',
  'dropped',
  'cancelled',
  'purged',
  'superseded',
])

const CLOSING = {
  opened: timestamp
    .optional()
    .meta({ description: 'The arrival of its first event, if Sluice gave all events their ids.' }),
  latest: timestamp.optional().meta({ description: 'The arrival of its last event.' }),
  due: timestamp.optional().meta({ description: 'When its window ended.' }),
  closedBy: z.enum(['quiet', 'max', 'full', 'none', 'early', 'unknown']).meta({
    description: 'Why its batch was closed. `early`: an operator ran it, or the window was another one then.',
  }),
}

const RUN = z.strictObject({
  id: z.string(),
  parent: z.string().meta({ description: 'The run that this run is the rest of, or empty.' }),
  lane: laneId,
  flow: z.string(),
  key: z.string(),
  tenant: z.string(),
  kind: runKind,
  reason: z.string(),
  started: timestamp,
  ended: timestamp,
  tries: z.int(),
  lapses: z.int(),
  events: z.array(z.string()),
  attempts: z.array(attempt).meta({ description: 'The failed attempts.' }),
  ...CLOSING,
})

/** A run in the list of a lane. */
export const PAST_RUN: z.ZodType = z.strictObject({
  ...RUN.pick({ id: true, kind: true, reason: true, tries: true, started: true, ended: true, attempts: true }).shape,
  events: z.int().meta({ description: 'The number of its events.' }),
  ...CLOSING,
})

export const runs: readonly ApiRoute[] = withTag('runs', [
  route({
    method: 'GET',
    path: '/v1/runs',
    name: 'listRuns',
    summary: 'Lists ended runs, newest first by start. The times in the filter are end times.',
    query: z.strictObject({
      ...LANE_FILTER,
      lane: laneId.exactOptional(),
      kind: runKind.exactOptional(),
      event: id
        .exactOptional()
        .meta({ description: 'Runs that had this event, among the last 100 of each of its first 20 lanes.' }),
      ...TIME_RANGE,
      ...PAGE_QUERY,
    }),
    response: pageOf(RUN),
    handle: (app, { query: { cursor, limit, ...filter } }) => app.admin.runs.list(filter, cursor, limit),
  }),
  route({
    method: 'GET',
    path: '/v1/runs/{id}',
    name: 'showRun',
    summary: 'Returns an ended run.',
    params: z.strictObject({ id }),
    response: RUN,
    handle: async (app, { params }) => orNotFound(await app.admin.runs.show(params.id), 'ended run', params.id),
  }),
])
