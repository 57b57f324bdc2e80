// `stripe` verifies the signed time and body. The secret is used as text: unlike other whsec_ secrets, it is not
// decoded.
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { SignRequest, ParseEvents, Source } from '../receive/source.ts'
import { isObject, parseJsonObject, type JsonObject } from './json-body.ts'
import { parseTime, toName } from './event-names.ts'
import {
  formatSeconds,
  formatTimedSignature,
  missingSignature,
  notUnderstood,
  parseSecrets,
  parseTimedSignature,
  parseTolerance,
  signJson,
  timedSignatureFault,
  type Secrets,
} from './signature.ts'

export interface StripeOptions {
  readonly secret: Secrets
  readonly tolerance?: Duration
}

const HEADER = 'stripe-signature'

export function stripe(options: StripeOptions): Source {
  assertKnownOptions(options, ['secret', 'tolerance'], 'stripe: ')
  const tolerance = parseTolerance('stripe', options.tolerance)
  return {
    scheme: 'stripe',
    secrets: parseSecrets('stripe', options.secret),
    tolerance,
    verify: ({ headers, body }, context) => {
      const given = headers[HEADER]
      if (given === undefined) return missingSignature(HEADER)
      const signature = parseTimedSignature(given)
      if (signature.signatures.length === 0) return missingSignature(`v1 in the ${HEADER}`)
      return timedSignatureFault(signature, body, context, tolerance)
    },
    events: parseEvents,
    sign,
  }
}

/** `parseEvents` reads events that contain their object, and thin events (v2), which contain only a reference to it. */
const parseEvents: ParseEvents = (request) => {
  const json = parseJsonObject(request)
  if ('code' in json) return json
  const event = json.value
  const [type, id] = [toName(event['type']), toName(event['id'])]
  if (type === undefined || id === undefined) {
    return notUnderstood('The body has no id or type.', 'Make sure that only Stripe calls this URL.')
  }
  const tenant = toName(event['account']) ?? toName(event['context'])
  const time = parseTime(toName(event['created']))
  return [{ type, dedupeId: id, body: request.body, subject: findSubject(event), tenant, time }]
}

function findSubject({ data, related_object: related }: JsonObject): string | undefined {
  const about = isObject(data) && isObject(data['object']) ? data['object'] : related
  return isObject(about) ? toName(about['id']) : undefined
}

const sign: SignRequest = (input) => {
  const { id, type = 'customer.created', secret } = input
  const seconds = formatSeconds(input.now)
  const data = { object: { id: 'cus_test', object: 'customer' } }
  const example = { id: `evt_${id}`, object: 'event', type, created: Number(seconds), data }
  return signJson(input, example, (body) => ({ [HEADER]: formatTimedSignature(secret, seconds, body) }))
}
