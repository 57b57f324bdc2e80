// `stripe` verifies the signed time and body. The secret is used as text: unlike other whsec_ secrets, it is not
// decoded.
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent, SignedRequest, SignOptions } from '../receive/source.ts'
import { isObject, parseJsonObject, type JsonObject } from './json-body.ts'
import { toNamedEvent, parseTime, toName } from './event-names.ts'
import {
  WRONG_SIGNATURE,
  hasValidMac,
  refusal,
  parseSecrets,
  timestampFault,
  parseTolerance,
  missingSignature,
} from './signature.ts'
import { computeMac, formatSeconds, signJson } from './sign.ts'

export interface StripeOptions {
  readonly secret: string | readonly string[]
  readonly tolerance?: Duration
}

const KNOWN: ReadonlySet<string> = new Set<keyof StripeOptions>(['secret', 'tolerance'])
const HEADER = 'stripe-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex' } as const

export function stripe(options: StripeOptions): Source {
  assertKnownOptions(options, KNOWN, 'stripe: ')
  const tolerance = parseTolerance('stripe', options.tolerance)
  return {
    scheme: 'stripe',
    secrets: parseSecrets('stripe', options.secret),
    tolerance,
    verify: ({ headers, body }, { now, secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return missingSignature(HEADER)
      const entries = given.split(',').map((entry) => entry.trim())
      const signatures = findValues('v1', entries)
      if (signatures.length === 0) return missingSignature(`v1 in the ${HEADER}`)
      const time = findValues('t', entries)[0] ?? ''
      return hasValidMac(signatures, [time, '.', body], secrets, MAC)
        ? timestampFault(time, now, tolerance)
        : WRONG_SIGNATURE
    },
    events: parseEvents,
    sign,
  }
}

function findValues(name: string, entries: readonly string[]): readonly string[] {
  return entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1))
}

/** `parseEvents` reads events that contain their object, and thin events (v2), which contain only a reference to it. */
function parseEvents(request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = parseJsonObject(request)
  if ('code' in json) return json
  const event = json.value
  const [type, id] = [toName(event['type']), toName(event['id'])]
  if (type === undefined || id === undefined) {
    return refusal('BODY_NOT_UNDERSTOOD', 'The body has no id or type.', 'Make sure that only Stripe calls this URL.')
  }
  const tenant = toName(event['account']) ?? toName(event['context'])
  const time = parseTime(toName(event['created']))
  return [toNamedEvent({ type, dedupeId: id, subject: findSubject(event), tenant, time }, request.body)]
}

function findSubject({ data, related_object: related }: JsonObject): string | undefined {
  const about = isObject(data) && isObject(data['object']) ? data['object'] : related
  return isObject(about) ? toName(about['id']) : undefined
}

function sign(asked: SignOptions): SignedRequest {
  const { id, type = 'customer.created', secret } = asked
  const seconds = formatSeconds(asked.now)
  const data = { object: { id: 'cus_test', object: 'customer' } }
  const example = { id: `evt_${id}`, object: 'event', type, created: Number(seconds), data }
  return signJson(asked, example, (body) => ({
    [HEADER]: `t=${seconds},v1=${computeMac(secret, [seconds, '.', body], MAC)}`,
  }))
}
