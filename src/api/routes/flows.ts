// Routes of flows: their backlog, pause and resume.
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { timestamp, name, NO_FIELDS, steerResult } from '../schemas.ts'
import { notFound } from './not-found.ts'

const FLOW = z.strictObject({
  flow: z.string(),
  lanes: z.int().meta({ description: 'Lanes with a deadline, counted up to a bound of at least 10,000.' }),
  live: z.int().meta({ description: 'Runs in progress.' }),
  due: timestamp.optional().meta({ description: 'The next deadline, past or future.' }),
  paused: z.strictObject({ reason: z.string(), by: z.string(), since: timestamp }).optional(),
})

const FLOW_PARAMS = z.strictObject({ flow: name })
const REASON = z.strictObject({ reason: z.string().min(1).max(1_000) })

export const flows: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/flows',
    name: 'listFlows',
    tag: 'flows',
    summary: 'Lists all flows with their backlog.',
    role: 'read',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: z.strictObject({ items: z.array(FLOW) }),
    handle: async (app) => ({ items: [...(await app.admin.flows.list())] }),
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/pause',
    name: 'pauseFlow',
    tag: 'flows',
    summary: 'Pauses a flow: no run starts. Events still arrive and windows still end.',
    role: 'operate',
    params: FLOW_PARAMS,
    query: NO_FIELDS,
    body: REASON,
    response: steerResult,
    auditText: ({ params, body }) => `pause the flow ${params.flow}: ${body.reason}`,
    handle: async (app, { params, body, actor: who }) => {
      const result = await app.admin.flows.pause(params.flow, { reason: body.reason, by: who })
      if (result === 'missing') throw notFound('flow', params.flow)
      return { result }
    },
  }),
  route({
    method: 'POST',
    path: '/v1/flows/{flow}/resume',
    name: 'resumeFlow',
    tag: 'flows',
    summary: 'Resumes a flow; ready lanes run again.',
    role: 'operate',
    params: FLOW_PARAMS,
    query: NO_FIELDS,
    body: NO_FIELDS,
    response: steerResult,
    auditText: ({ params }) => `resume the flow ${params.flow}`,
    handle: async (app, { params, actor: who }) => {
      const result = await app.admin.flows.resume(params.flow, who)
      if (result === 'missing') throw notFound('flow', params.flow)
      return { result }
    },
  }),
]
