// Stripe: time and body signed, by the secret as it is written (it is not decoded, though it begins with whsec_).
import type { Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { isObject, objectOf, type JsonObject } from './json-body.ts'
import { eventNamed, momentOf, nameOf } from './named-by.ts'
import { FORGED, isSigned, refusal, secretsOf, timeFault, toleranceOf, unsigned } from './signature.ts'

export interface StripeOptions {
  readonly secret: string | readonly string[]
  readonly tolerance?: Duration
}

const KNOWN: ReadonlySet<string> = new Set<keyof StripeOptions>(['secret', 'tolerance'])
const HEADER = 'stripe-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex' } as const

export function stripe(options: StripeOptions): Source {
  onlyKnown(options, KNOWN, 'stripe: ')
  const tolerance = toleranceOf('stripe', options.tolerance)
  return {
    scheme: 'stripe',
    secrets: secretsOf('stripe', options.secret),
    tolerance,
    verify: ({ headers, body }, { now, secrets }) => {
      const given = headers[HEADER]
      if (given === undefined) return unsigned(HEADER)
      const entries = given.split(',').map((entry) => entry.trim())
      const signatures = valuesOf('v1', entries)
      if (signatures.length === 0) return unsigned(`v1 in the ${HEADER}`)
      const time = valuesOf('t', entries)[0] ?? ''
      return isSigned(signatures, [time, '.', body], secrets, MAC) ? timeFault(time, now, tolerance) : FORGED
    },
    events: eventsOf,
  }
}

function valuesOf(name: string, entries: readonly string[]): readonly string[] {
  return entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1))
}

/** Events with their object in them, and thin ones (v2), which only say what it is about. */
function eventsOf(request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = objectOf(request)
  if ('code' in json) return json
  const event = json.value
  const [type, id] = [nameOf(event['type']), nameOf(event['id'])]
  if (type === undefined || id === undefined) {
    return refusal('BODY_NOT_UNDERSTOOD', 'The body has no id or type.', 'Only Stripe is to call this address.')
  }
  const tenant = nameOf(event['account']) ?? nameOf(event['context'])
  const time = momentOf(nameOf(event['created']))
  return [eventNamed({ type, dedupeId: id, subject: subjectOf(event), tenant, time }, request.body)]
}

function subjectOf({ data, related_object: related }: JsonObject): string | undefined {
  const about = isObject(data) && isObject(data['object']) ? data['object'] : related
  return isObject(about) ? nameOf(about['id']) : undefined
}
