// The schemas of endpoints in requests and responses.
import { z } from 'zod'
import { URL_LENGTH_MAX } from '../../deliver/http/addresses.ts'
import type { EndpointUpdate, NewEndpoint } from '../../deliver/endpoint.ts'
import type { EndpointReplay } from '../../deliver/endpoint-replay.ts'
import type { DeliveryRecord } from '../../deliver/deliveries.ts'
import type { RotateSecretOptions } from '../../deliver/secrets.ts'
import { duration, id, tenant, timeInput, timestamp } from '../schemas.ts'

export const SUBSCRIBERS_PATH = '/v1/webhooks/subscribers'
export const ID_PARAMS: z.ZodObject<{ id: typeof id }> = z.strictObject({ id })

const SIGNING = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('standard') }),
  z.strictObject({
    kind: z.literal('hmac'),
    header: z.string().max(100),
    encoding: z.enum(['hex', 'base64']),
    prefix: z.string().max(100).default(''),
  }),
  z.strictObject({ kind: z.literal('bearer') }),
])

const FORM = z
  .union([
    z.enum(['standard', 'events', 'flat', 'cloudevents', 'slack', 'discord', 'pagerduty']),
    z.strictObject({ kind: z.literal('events'), fields: z.record(z.string(), z.string()) }),
    z.strictObject({ kind: z.literal('cloudevents'), mode: z.enum(['structured', 'binary', 'batch']) }),
  ])
  .meta({
    description:
      'The body. `standard`: `{ type, timestamp, data: { events } }`; `events`: `{ events }`, with further `fields` by path; `flat`: the data of one event.',
  })

const GLOBS =
  'Globs over `source/type`, or over the type where a glob has no slash. Only a glob with a slash matches what a source received.'

const WHERE =
  'A filter over the content: `{ "data.total": { "gte": 100 } }`, with `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in`, `prefix`, `exists`, and `all`, `any`, `not`. Null means none.'

const FIELDS = {
  name: z.string().max(1_024),
  url: z.string().max(URL_LENGTH_MAX).meta({ example: 'https://example.com/hook' }),
  eventFilter: z.array(z.string().max(256)).max(100).meta({ description: GLOBS }),
  where: z.record(z.string(), z.unknown()).nullable().meta({ description: WHERE }),
  description: z.string().max(1_024),
  headers: z.record(z.string(), z.string()).meta({ description: 'Sent with each batch.' }),
  signing: SIGNING,
  form: FORM,
  rate: z
    .strictObject({ rate: z.int().min(1), per: duration })
    .nullable()
    .meta({ description: 'The maximum number of POSTs in any period of `per`; null for no limit.' }),
  disableAfter: duration
    .nullable()
    .meta({ description: 'How long the endpoint may only fail before it is disabled; null for ever.' }),
} as const

const active = z.boolean().meta({ description: 'If false, the endpoint is paused and its events wait.' })

const BASE_SUBSCRIBER = z.strictObject({
  id: z.string(),
  ...FIELDS,
  headers: z.array(z.string()).meta({ description: 'Their names; the values are encrypted and never shown.' }),
  tenant,
  createdAt: timestamp,
  active,
  proof: z
    .enum(['none', 'pending', 'proven'])
    .meta({ description: '`pending`: the endpoint gets nothing until it is proven.' }),
  history: z
    .strictObject({ from: timestamp, replay: z.string().meta({ description: 'The replay that sends it.' }) })
    .optional()
    .meta({ description: 'Present until the endpoint has got its history. Its live events wait behind it.' }),
  transform: z.int().nullable().meta({ description: 'The version of its transformation; null for none.' }),
})
const proofError = z.string().optional().meta({ description: 'Why the endpoint is not proven.' })
const HEALTH = z.strictObject({
  status: z.enum(['up', 'degraded', 'down']),
  why: z.string().meta({ description: 'Empty if the endpoint is up.' }),
  breaker: z.enum(['closed', 'open', 'half-open', 'disabled']),
  consecutiveFailures: z.int(),
  failingSince: timestamp.optional(),
  attempts: z.int().meta({ description: 'This and the following fields cover the last 24 hours.' }),
  successRate: z.number().optional().meta({ description: 'The share of successful attempts, from 0 to 1.' }),
  latencyMs: z.int().optional().meta({ description: 'From the creation of an event to its delivery.' }),
  responseMs: z.int().optional().meta({ description: 'How long a POST took.' }),
  failedBatches: z.int().meta({ description: 'Dead letters. With more than 100 the health is `degraded`.' }),
  stuckBatches: z
    .int()
    .meta({ description: 'Batches that are due for five minutes and not claimed. With any, the health is `down`.' }),
})
export const SUBSCRIBER_WITH_HEALTH: z.ZodType = BASE_SUBSCRIBER.extend({
  lastSuccessfulDeliveryAt: timestamp.optional(),
  health: HEALTH,
  waiting: z.int().meta({ description: 'Events that wait for the endpoint.' }),
  nextTry: timestamp.optional().meta({ description: 'When a failed batch is posted again.' }),
  secrets: z
    .array(z.strictObject({ since: timestamp, until: timestamp.optional() }))
    .optional()
    .meta({ description: 'When each active secret began; the newest first. The list of subscribers leaves it out.' }),
  lastDay: z
    .array(z.strictObject({ at: timestamp, delivered: z.int(), failed: z.int() }))
    .length(48)
    .meta({ description: 'The POSTs of the last 48 half hours, oldest first; the last one is the current one.' }),
})
export const SUBSCRIBER_WITH_SECRET: z.ZodType = BASE_SUBSCRIBER.extend({
  secret: z.string(),
  proofError,
  note: z.string().optional().meta({ description: 'Why nothing will be sent, e.g. because the app has no delivery.' }),
})
const secret = z.string().max(1_500).meta({ description: 'At least 16 bytes, or `whsec_` and base64.' })

export const deliveryStatus: z.ZodType<DeliveryRecord['status']> = z.enum([
  'PENDING',
  'DELIVERING',
  'SUCCESS',
  'FAILED',
])

const ATTEMPT = z.strictObject({
  at: timestamp,
  ms: z.number(),
  status: z.int().optional().meta({ description: 'The status of the response. Missing if there was none.' }),
  answer: z.string().optional().meta({ description: 'Its first 1,000 characters.' }),
  error: z.string().meta({ description: 'Empty if the batch was delivered.' }),
})

export const deliveryAttempt: z.ZodType = ATTEMPT

export const DELIVERY: z.ZodType = z.strictObject({
  id: z.string(),
  delivery: z.string(),
  subscriber: z.string(),
  status: deliveryStatus,
  events: z.int().meta({ description: 'The number of events in the batch.' }),
  firstEvent: z.string().optional().meta({ description: 'The id of its first event.' }),
  lastEvent: z.string().optional().meta({ description: 'The id of its last event.' }),
  attemptCount: z.int(),
  maxAttempts: z.int(),
  createdAt: timestamp,
  deliveredAt: timestamp.optional(),
  nextRetryAt: timestamp.optional(),
  lastError: z.string().meta({ description: 'Empty if there was none.' }),
  attempts: z
    .array(ATTEMPT)
    .meta({ description: 'All of the last 50 attempts to the endpoint; of older ones, those that failed.' }),
})

export const TEST_RESULT: z.ZodType = z.strictObject({
  event: z.string(),
  delivered: z.boolean(),
  ms: z.int(),
  status: ATTEMPT.shape.status,
  answer: ATTEMPT.shape.answer,
  error: ATTEMPT.shape.error,
})

export const SUBSCRIBER: z.ZodType = BASE_SUBSCRIBER
export const ENABLE_RESULT: z.ZodType = BASE_SUBSCRIBER.extend({
  dropped: z.int().meta({ description: 'The number of dropped events.' }),
})
export const PROOF_RESULT: z.ZodType = BASE_SUBSCRIBER.extend({ proofError })

const WRITABLE_FIELDS = {
  ...FIELDS,
  eventFilter: FIELDS.eventFilter
    .nullable()
    .meta({ description: `${GLOBS} Null or an empty list matches everything that the app publishes.` }),
  active,
  secret,
} as const

export const NEW_SUBSCRIBER: z.ZodType<NewEndpoint> = z.strictObject({
  ...z.strictObject(WRITABLE_FIELDS).partial().shape,
  url: FIELDS.url,
  tenant: tenant.optional(),
  from: z
    .union([z.enum(['now', 'beginning']), timeInput])
    .optional()
    .meta({
      description: 'Which stored events the endpoint gets before its live ones: none, all, or those since a time.',
    }),
}) as unknown as z.ZodType<NewEndpoint>

export const SUBSCRIBER_UPDATE: z.ZodType<EndpointUpdate> = z
  .strictObject({
    ...WRITABLE_FIELDS,
    secret: secret.meta({ description: 'If it differs from the current secret, it is rotated in.' }),
    headers: z
      .record(z.string(), z.string().nullable())
      .meta({ description: 'Headers that are not given stay; null removes one.' }),
  })
  .partial() as unknown as z.ZodType<EndpointUpdate>

export const ROTATION: z.ZodType<Pick<Partial<RotateSecretOptions>, 'secret' | 'force'>> = z.strictObject({
  secret: secret.exactOptional(),
  force: z.boolean().exactOptional().meta({ description: 'Whether the old secret ends at once.' }),
})

export const ENDPOINT_REPLAY: z.ZodType<EndpointReplay> = z.strictObject({
  deadLetter: id.exactOptional().meta({ description: 'One dead letter of the endpoint. No other field may be given.' }),
  dead: z
    .boolean()
    .exactOptional()
    .meta({ description: 'Dead letters only. Default: true, unless `from`, `to` or `type` is given.' }),
  from: z.union([z.literal('beginning'), timeInput]).exactOptional(),
  to: timeInput.exactOptional(),
  type: z.string().max(256).exactOptional().meta({ description: 'Events of this type, or dead letters with one.' }),
  rate: z.int().min(1).max(1_000_000).exactOptional().meta({ description: 'Events per `per`. Default: 100.' }),
  per: duration.exactOptional().meta({ description: 'Default: one second.' }),
})

export const ENDPOINT_REPLAY_RESULT: z.ZodType = z.strictObject({
  count: z.int().meta({ description: 'Dead letters that will be retried, or events that the replay will read.' }),
  replay: z.string().optional().meta({ description: 'The id of the replay of stored events.' }),
})

export const STATS_HOURS: z.ZodType<number, string | undefined> = z
  .string()
  .regex(/^(?:[1-9]|1\d|2[0-4])$/, 'it must be a number from 1 to 24')
  .default('24')
  .transform(Number)
  .meta({ description: '1 to 24, in full half hours with the current one.', example: '24' })

const PERCENTILES = z.strictObject({ p50: z.number(), p95: z.number(), p99: z.number() })
const POST_COUNTS = {
  delivered: z.int().meta({ description: 'POSTs that were accepted.' }),
  failed: z.int().meta({ description: 'POSTs that were not.' }),
  dead: z.int().meta({ description: 'Batches that became dead letters.' }),
} as const

export const ENDPOINT_STATS: z.ZodType = z.strictObject({
  since: timestamp,
  ...POST_COUNTS,
  successRate: z.number().optional().meta({ description: 'From 0 to 1; missing without POSTs.' }),
  latencyMs: PERCENTILES.optional().meta({ description: 'From the oldest event of a batch to its delivery.' }),
  responseMs: PERCENTILES.optional().meta({ description: 'How long the POSTs took.' }),
  waiting: z.strictObject({ events: z.int(), replayed: z.int(), inProgress: z.int() }),
  steps: z
    .array(z.strictObject({ at: timestamp, ...POST_COUNTS }))
    .meta({ description: 'One for each half hour with a POST.' }),
})
