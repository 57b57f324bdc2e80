// Stored events run again: counted first, begun, watched, ended at a word.
import { z } from 'zod'
import { EVENT_FILTER } from './event-filter.ts'
import { route, type ApiRoute } from '../route.ts'
import { counted, id, NOTHING, steered } from '../schemas.ts'
import { duration } from './acts.ts'
import { missing } from './missing.ts'
import { into, replay, replayAnswer } from './replay-schemas.ts'

const TAG = 'replays'
const ONE = z.strictObject({ id })

const FILTER = z.strictObject({
  ...EVENT_FILTER,
  event: id.exactOptional().meta({ description: 'One alone.' }),
})

export const replays: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/replays',
    name: 'listReplays',
    tag: TAG,
    summary: 'The last 1,000, newest first.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(replay) }),
    handle: async (app) => ({ items: (await app.replays.list()).map(replayAnswer) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/count',
    name: 'countReplay',
    tag: TAG,
    summary: 'How many events a replay by this filter would look at.',
    role: 'read',
    params: NOTHING,
    query: FILTER,
    body: NOTHING,
    answer: counted,
    handle: async (app, { query }) => ({ count: await app.replays.count(query) }),
  }),
  route({
    method: 'GET',
    path: '/v1/replays/{id}',
    name: 'showReplay',
    tag: TAG,
    summary: 'How far one has come.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: replay,
    handle: async (app, { params }) => {
      const found = await app.replays.show(params.id)
      if (found === undefined) throw missing('replay', params.id)
      return replayAnswer(found)
    },
  }),
  route({
    method: 'POST',
    path: '/v1/replays',
    name: 'startReplay',
    tag: TAG,
    summary: 'Runs stored events again. The same id is the same replay: asked for twice, begun once.',
    role: 'operate',
    params: NOTHING,
    query: NOTHING,
    body: z.strictObject({
      filter: FILTER.meta({ description: 'Which events; {} is every one that is kept.' }),
      id: z.string().min(1).max(200).exactOptional(),
      into,
      rate: z.int().min(1).max(1_000_000).exactOptional().meta({ description: 'Events in `per`; 100 unless said.' }),
      per: duration.exactOptional().meta({ description: 'A second unless said.' }),
    }),
    answer: replay,
    audited: ({ body: { filter, id: given = '', into: flows = [] } }) =>
      `begin the replay ${given} of ${JSON.stringify(filter)} into ${flows.join(', ') || 'all flows'}`,
    handle: async (app, { body: { filter, ...options } }) => replayAnswer(await app.replays.start(filter, options)),
  }),
  route({
    method: 'POST',
    path: '/v1/replays/{id}/cancel',
    name: 'cancelReplay',
    tag: TAG,
    summary: 'Places nothing more; what was placed already runs.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: steered,
    audited: ({ params }) => `cancel the replay ${params.id}`,
    handle: async (app, { params }) => {
      const result = await app.replays.cancel(params.id)
      if (result === 'missing') throw missing('replay', params.id)
      return { result }
    },
  }),
]
