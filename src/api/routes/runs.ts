// Routes of ended runs with their attempts. A run that has not ended is part of its lane.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { timeInput, id, laneKey, name, NO_FIELDS, PAGE_QUERY, pageOf, tenant } from '../schemas.ts'
import { laneId } from './lane-schemas.ts'
import { notFound } from './not-found.ts'
import { run } from './run-schemas.ts'

const TAG = 'runs'

export const runs: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/runs',
    name: 'listRuns',
    tag: TAG,
    summary: 'Lists ended runs, newest first by start. The times in the filter are end times.',
    role: 'read',
    params: NO_FIELDS,
    query: z.strictObject({
      flow: name.exactOptional(),
      key: laneKey.exactOptional().meta({ description: 'Requires `flow`.' }),
      lane: laneId.exactOptional(),
      tenant: tenant.exactOptional(),
      from: timeInput.exactOptional(),
      to: timeInput.exactOptional(),
      ...PAGE_QUERY,
    }),
    body: NO_FIELDS,
    response: pageOf(run),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.admin.runs.list(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/runs/{id}',
    name: 'showRun',
    tag: TAG,
    summary: 'Returns an ended run.',
    role: 'read',
    params: z.strictObject({ id }),
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: run,
    handle: async (app, { params }) => {
      const found = await app.admin.runs.show(params.id)
      if (found === undefined) throw notFound('run that has ended', params.id)
      return found
    },
  }),
]
