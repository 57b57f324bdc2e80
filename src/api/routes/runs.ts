// Runs that have ended, with their attempts. One that has not is in its lane.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { asked, id, laneKey, name, NOTHING, PAGE, pageOf, tenant } from '../schemas.ts'
import { laneId } from './lane-schemas.ts'
import { missing } from './missing.ts'
import { run } from './run-schemas.ts'

const TAG = 'runs'

export const runs: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/runs',
    name: 'listRuns',
    tag: TAG,
    summary: 'Newest first, by when they began. Times of the filter are those of the end.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({
      flow: name.exactOptional(),
      key: laneKey.exactOptional().meta({ description: 'Together with flow.' }),
      lane: laneId.exactOptional(),
      tenant: tenant.exactOptional(),
      from: asked.exactOptional(),
      to: asked.exactOptional(),
      ...PAGE,
    }),
    body: NOTHING,
    answer: pageOf(run),
    handle: async (app, { query: { cursor, limit, ...filter } }) => {
      const { items, next } = await app.runs.list(filter, cursor, limit)
      return { items: [...items], next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/runs/{id}',
    name: 'showRun',
    tag: TAG,
    summary: 'One that has ended.',
    role: 'read',
    params: z.strictObject({ id }),
    query: NOTHING,
    body: NOTHING,
    answer: run,
    handle: async (app, { params }) => {
      const found = await app.runs.show(params.id)
      if (found === undefined) throw missing('run that has ended', params.id)
      return found
    },
  }),
]
