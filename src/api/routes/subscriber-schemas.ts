// What routes of subscribers take and answer.
import { z } from 'zod'
import { URL_LENGTH_MAX } from '../../deliver/addresses.ts'
import type { EndpointChange, NewEndpoint } from '../../deliver/endpoint.ts'
import type { Rotation } from '../../deliver/endpoints.ts'
import { id, moment, tenant } from '../schemas.ts'
import { duration } from './acts.ts'

export const TAG = 'subscribers'
export const PATH = '/v1/webhooks/subscribers'
export const ONE: z.ZodObject<{ id: typeof id }> = z.strictObject({ id })

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

const FIELDS = {
  name: z.string().max(1_024),
  url: z.string().max(URL_LENGTH_MAX).meta({ example: 'https://example.com/hook' }),
  eventFilter: z.array(z.string().max(256)).max(100).meta({ description: 'Globs over types of events.' }),
  description: z.string().max(1_024),
  headers: z.record(z.string(), z.string()).meta({ description: 'Sent along with each batch.' }),
  signing: SIGNING,
  form: z.enum(['standard', 'events']).meta({
    description: '`standard`: `{ type, timestamp, data: { events } }`; `events`: `{ events }`.',
  }),
  rate: z
    .strictObject({ rate: z.int().min(1), per: duration })
    .nullable()
    .meta({ description: 'So many POSTs in any stretch of time as long as `per`; null for no such limit.' }),
} as const

const active = z.boolean().meta({ description: 'False: paused, and its events wait.' })

const PLAIN = z.strictObject({
  id: z.string(),
  ...FIELDS,
  headers: z.array(z.string()).meta({ description: 'Their names; values are sealed, and not shown.' }),
  tenant,
  createdAt: moment,
  active,
  proof: z.enum(['none', 'pending', 'proven']).meta({ description: '`pending`: it gets nothing before it is proven.' }),
})
const proofError = z.string().optional().meta({ description: 'Why it is not proven.' })
const HEALTH = z.strictObject({
  status: z.enum(['up', 'degraded', 'down']),
  why: z.string().meta({ description: 'Empty: it is up.' }),
  breaker: z.enum(['closed', 'open', 'half-open', 'disabled']),
  consecutiveFailures: z.int(),
  failingSince: moment.optional(),
  attempts: z.int().meta({ description: 'This and what follows is of the last 24 hours.' }),
  successRate: z.number().optional().meta({ description: 'Successful deliveries of all attempts, from 0 to 1.' }),
  latencyMs: z.int().optional().meta({ description: 'From when an event was made until it was delivered.' }),
  responseMs: z.int().optional().meta({ description: 'How long a POST took.' }),
  failedBatches: z.int().meta({ description: 'Given up: dead letters. More than 100 are `degraded`.' }),
  stuckBatches: z.int().meta({ description: 'Due for five minutes, and not taken up: `down`.' }),
})
export const SEEN: z.ZodType = PLAIN.extend({ lastSuccessfulDeliveryAt: moment.optional(), health: HEALTH })
export const WITH_SECRET: z.ZodType = PLAIN.extend({ secret: z.string(), proofError })
const secret = z.string().max(1_500).meta({ description: 'At least 16 bytes, or `whsec_` and base64.' })

const ATTEMPT = z.strictObject({
  at: moment,
  ms: z.number(),
  status: z.int().optional().meta({ description: 'Of the answer; not there if there was none.' }),
  answer: z.string().optional().meta({ description: 'Its first 1,000 characters.' }),
  error: z.string().meta({ description: 'Empty: it was delivered.' }),
})

export const DELIVERY: z.ZodType = z.strictObject({
  id: z.string(),
  delivery: z.string(),
  subscriber: z.string(),
  status: z.enum(['PENDING', 'DELIVERING', 'SUCCESS', 'FAILED']),
  events: z.int().meta({ description: 'How many are in it.' }),
  attemptCount: z.int(),
  maxAttempts: z.int(),
  createdAt: moment,
  deliveredAt: moment.optional(),
  nextRetryAt: moment.optional(),
  lastError: z.string().meta({ description: 'Empty: there was none.' }),
  attempts: z.array(ATTEMPT).meta({ description: 'All of the last 50 to it; of those before, the ones that failed.' }),
})

export const TESTED: z.ZodType = z.strictObject({
  event: z.string(),
  delivered: z.boolean(),
  ms: z.int(),
  status: ATTEMPT.shape.status,
  answer: ATTEMPT.shape.answer,
  error: ATTEMPT.shape.error,
})

export const SUBSCRIBER: z.ZodType = PLAIN
export const ENABLED: z.ZodType = PLAIN.extend({ dropped: z.int().meta({ description: 'Events.' }) })
export const PROVED: z.ZodType = PLAIN.extend({ proofError })

const ASKED = {
  ...FIELDS,
  eventFilter: FIELDS.eventFilter
    .nullable()
    .meta({ description: 'Globs over types of events; null, or none, is all.' }),
  active,
  secret,
} as const

export const NEW_SUBSCRIBER: z.ZodType<NewEndpoint> = z.strictObject({
  ...z.strictObject(ASKED).partial().shape,
  url: FIELDS.url,
  tenant: tenant.optional(),
}) as unknown as z.ZodType<NewEndpoint>

export const CHANGE: z.ZodType<EndpointChange> = z
  .strictObject({
    ...ASKED,
    secret: secret.meta({ description: 'Another than it has is rotated in.' }),
    headers: z
      .record(z.string(), z.string().nullable())
      .meta({ description: 'What is not named stays; null takes one away.' }),
  })
  .partial() as unknown as z.ZodType<EndpointChange>

export const ROTATION: z.ZodType<Pick<Partial<Rotation>, 'secret' | 'force'>> = z.strictObject({
  secret: secret.exactOptional(),
  force: z.boolean().exactOptional().meta({ description: 'The new one is alone at once.' }),
})
