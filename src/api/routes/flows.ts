// Flows: what each holds, and whether it is paused.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { moment, name, NOTHING, steered } from '../schemas.ts'
import { missing } from './missing.ts'

const FLOW = z.strictObject({
  flow: z.string(),
  lanes: z.int().meta({ description: 'Lanes that wait for a moment, counted up to a bound of at least 10,000.' }),
  live: z.int().meta({ description: 'Runs under way.' }),
  due: moment.optional().meta({ description: 'The next deadline, past or future.' }),
  paused: z.strictObject({ reason: z.string(), by: z.string(), since: moment }).optional(),
})

const ONE = z.strictObject({ flow: name })
const REASON = z.strictObject({ reason: z.string().min(1).max(1_000) })

export const flows: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/flows',
    name: 'listFlows',
    tag: 'flows',
    summary: 'All flows, with what they hold.',
    role: 'read',
    params: NOTHING,
    query: NOTHING,
    body: NOTHING,
    answer: z.strictObject({ items: z.array(FLOW) }),
    handle: async (app) => ({ items: [...(await app.flows.list())] }),
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/pause',
    name: 'pauseFlow',
    tag: 'flows',
    summary: 'Nothing of the flow is begun any more; arrivals and windows go on.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: REASON,
    answer: steered,
    audited: ({ params, body }) => `pause the flow ${params.flow}: ${body.reason}`,
    handle: async (app, { params, body, who }) => {
      const result = await app.flows.pause(params.flow, { reason: body.reason, by: who })
      if (result === 'missing') throw missing('flow', params.flow)
      return { result }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/resume',
    name: 'resumeFlow',
    tag: 'flows',
    summary: 'Begins again with what is due.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: steered,
    audited: ({ params }) => `resume the flow ${params.flow}`,
    handle: async (app, { params, who }) => {
      const result = await app.flows.resume(params.flow, who)
      if (result === 'missing') throw missing('flow', params.flow)
      return { result }
    },
  }),
]
