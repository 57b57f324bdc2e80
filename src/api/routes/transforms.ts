// Routes of the transformations of endpoints.
import { z } from 'zod'
import { orNotFound, route, withTag, type ApiRoute } from '../route.ts'
import { timestamp } from '../schemas.ts'
import { ID_PARAMS, SUBSCRIBERS_PATH } from './subscriber-schemas.ts'

const PATH = `${SUBSCRIBERS_PATH}/{id}/transform`

const code = z.string().max(65_536).meta({
  description: 'An ES module whose default export takes the events of a message and returns those to send.',
  example: 'export default (events) => events.map((event) => ({ ...event, data: { id: event.data.id } }))',
})
const version = z.int().min(1).meta({ description: 'Versions count from 1.' })
const VERSION = z.strictObject({ version: z.int(), at: timestamp, by: z.string(), code: z.string() })

const TRANSFORM = z.strictObject({
  current: VERSION.optional().meta({ description: 'The version that is used. Missing if there is none.' }),
  versions: z.array(VERSION).meta({ description: 'The last ten versions, newest first.' }),
})

const SAMPLE = z.strictObject({
  type: z.string().max(1_024),
  data: z.unknown().optional(),
  source: z.string().max(1_024).exactOptional(),
  subject: z.string().max(16_384).exactOptional(),
})

const TEST = z.strictObject({
  code: code.exactOptional(),
  version: version.exactOptional(),
  event: z.string().max(256).exactOptional().meta({ description: "A stored event of the endpoint's tenant." }),
  sample: SAMPLE.exactOptional().meta({ description: 'An event that is not stored. Default: a test event.' }),
})

const TEST_RESULT = z.strictObject({
  input: z.array(z.unknown()).meta({ description: 'The events that the function got.' }),
  output: z.unknown().optional().meta({ description: 'What it returned; null for nothing.' }),
  body: z.string().optional().meta({ description: 'What would be posted. Missing if it failed or skips the event.' }),
  contentType: z.string().optional(),
  error: z.string().meta({ description: 'Empty if it worked.' }),
  line: z.int().optional().meta({ description: 'The line of the code at which it failed.' }),
  console: z.array(z.string()).meta({ description: 'At most 100 lines.' }),
  ms: z.number(),
})

export const transforms: readonly ApiRoute[] = withTag('subscribers', [
  route({
    method: 'GET',
    path: PATH,
    name: 'showTransform',
    summary: 'Returns the transformation of an endpoint with its last versions.',
    params: ID_PARAMS,
    response: TRANSFORM,
    handle: (app, { params }) => app.endpoints.transforms.get(params.id),
  }),
  route({
    method: 'POST',
    path: PATH,
    name: 'setTransform',
    summary: 'Sets the transformation of an endpoint as a new version, from `code` or from an earlier `version`.',
    params: ID_PARAMS,
    body: z.strictObject({ code: code.exactOptional(), version: version.exactOptional() }),
    response: VERSION,
    auditText: 'in its commit',
    handle: (app, { params, body, actor }) => app.endpoints.transforms.set(params.id, body, actor),
  }),
  route({
    method: 'DELETE',
    path: PATH,
    name: 'removeTransform',
    summary: 'Removes the transformation of an endpoint. Its versions stay.',
    params: ID_PARAMS,
    response: z.strictObject({ result: z.literal('ok') }),
    auditText: 'in its commit',
    handle: async (app, { params, actor }) => ({
      result: orNotFound(
        await app.endpoints.transforms.remove(params.id, actor),
        'transformation of endpoint',
        params.id,
      ),
    }),
  }),
  route({
    method: 'POST',
    path: `${PATH}/test`,
    name: 'testTransform',
    summary: 'Runs a transformation on one event and posts nothing. Default: the version that is used.',
    rateLimited: 'tests',
    params: ID_PARAMS,
    body: TEST,
    response: TEST_RESULT,
    auditText: ({ params }) => `test a transformation of the subscriber ${params.id}`,
    handle: (app, { params, body }) => app.endpoints.transforms.test(params.id, body),
  }),
])
