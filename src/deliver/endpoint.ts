// The fields of an endpoint: its URL, filter and signing. `parseEndpointFields` checks them and reports the first
// invalid field with its fix.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { parseLimitOptions } from '../limit/options.ts'
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'
import { createMatcher } from '../flow/globs.ts'
import { parseEventFilter } from './event-filter.ts'
import { checkUrl, URL_LENGTH_MAX, type GuardRules } from './http/addresses.ts'
import { headersFault, mergeHeaders, type HeaderMap, type HeadersChange } from './http/headers.ts'
import { mayReceive } from './endpoint-events.ts'
import { secretFaultFor, signingFault, type Signing } from './signing.ts'

export interface EndpointFields {
  /** A display name. */
  readonly name: string
  readonly url: string
  /** Globs over event types; by default all. A glob without a slash matches only events that the app published. */
  readonly eventFilter: readonly string[]
  /** The endpoint receives only events of this tenant; `''` means events without a tenant. */
  readonly tenant: string
  readonly description: string
  readonly headers: HeaderMap
  readonly signing: Signing
  /** `standard` sends `{ type, timestamp, data: { events } }`; `events` sends `{ events }`. */
  readonly form: 'standard' | 'events'
  /** At most `rate` POSTs in any window of length `per`, over all processes. Null means no limit. */
  readonly rate: EndpointRate | null
}

export interface EndpointRate {
  readonly rate: number
  readonly per: Duration
}

export interface Endpoint extends Omit<EndpointFields, 'headers'> {
  readonly id: string
  /** Only the names, because the values are encrypted like secrets and never shown. */
  readonly headers: readonly string[]
  readonly createdAt: Millis
  /** If false, the endpoint is paused and its events wait. */
  readonly active: boolean
  /** The proof of ownership. Nothing is routed to a `pending` endpoint. `none` means that no proof was required. */
  readonly proof: 'none' | 'pending' | 'proven'
}

export type NewEndpoint = Pick<EndpointFields, 'url'> & Partial<Omit<EndpointFields, 'eventFilter'>> & EndpointInput

interface EndpointInput {
  /** Null or an empty list means all events. */
  readonly eventFilter?: readonly string[] | null
  /** False pauses the endpoint. */
  readonly active?: boolean
  /**
   * At least 16 bytes, or `whsec_` and base64. By default, a new endpoint gets a generated secret. A changed secret
   * starts a rotation.
   */
  readonly secret?: string
}

/** The tenant never changes, because the waiting events of one tenant must not reach another. */
export type EndpointUpdate = Partial<Omit<EndpointFields, 'tenant' | 'headers' | 'eventFilter'>> &
  EndpointInput & {
    /** Headers that are not named stay. */
    readonly headers?: HeadersChange
  }

const FIELDS: ReadonlySet<string> = new Set<keyof NewEndpoint>([
  'name',
  'url',
  'eventFilter',
  'tenant',
  'description',
  'headers',
  'signing',
  'form',
  'rate',
  'secret',
  'active',
])
const TEXT_MAX = 1_024
const PREVIOUS_SECRET = 'the previous secret, which stays active until its day is over or force ends it,'

const DEFAULT_FIELDS: Omit<EndpointFields, 'url' | 'eventFilter'> = {
  name: '',
  tenant: '',
  description: '',
  headers: {},
  signing: { kind: 'standard' },
  form: 'standard',
  rate: null,
}

/**
 * `parseEndpointFields` checks the fields against all active secrets, because a rotation also sends the previous
 * secret, and some signings send only that one.
 */
export function parseEndpointFields(given: NewEndpoint, secrets: readonly string[], rules: GuardRules): EndpointFields {
  if (typeof given !== 'object' || given === null)
    throw invalid('url', 'is missing. It is the address for the batches.')
  assertKnownOptions(given, FIELDS, 'endpoint: ')
  const { secret: _secret, active = true, eventFilter, ...rest } = given
  const fields: EndpointFields = { ...DEFAULT_FIELDS, ...rest, eventFilter: parseEventFilter(eventFilter) }
  for (const field of ['name', 'tenant', 'description', 'url'] as const) {
    const text: unknown = fields[field]
    const most = field === 'url' ? URL_LENGTH_MAX : TEXT_MAX
    if (typeof text !== 'string' || !text.isWellFormed() || text.length > most) {
      throw invalid(field, `must be a string of at most ${most} characters.`)
    }
  }
  const checked = checkUrl(fields.url, rules)
  if (checked.kind === 'forbidden') throw invalid('url', `is not allowed: ${checked.why}`)
  if (typeof active !== 'boolean') throw invalid('active', 'must be true or false.')
  const badHeaders = headersFault(fields.headers)
  if (badHeaders !== undefined) throw invalid('headers', `are invalid: ${badHeaders}`)
  const badSigning = signingFault(fields.signing)
  if (badSigning !== undefined) throw invalid('signing', `is invalid: ${badSigning}`)
  for (const [at, secret] of secrets.entries()) {
    const fault = secretFaultFor(fields.signing, secret)
    if (fault !== undefined) throw invalid(at === 0 ? 'secret' : PREVIOUS_SECRET, `is invalid: ${fault}`)
  }
  if (fields.form !== 'standard' && fields.form !== 'events') throw invalid('form', `must be 'standard' or 'events'.`)
  assertRate(fields.rate)
  return { ...fields, headers: mergeHeaders(fields.headers) }
}

/** A rate must be valid as a limit. */
function assertRate(rate: unknown): void {
  if (rate === null) return
  try {
    parseLimitOptions('rate', rate as EndpointRate)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw invalid('rate', `is invalid: ${error.message}`)
  }
}

/**
 * `createEventMatcher` returns whether the endpoint receives an event: its tenant and filter match, and the event is
 * not about itself.
 */
export function createEventMatcher(
  endpoint: Pick<Endpoint, 'id' | 'tenant' | 'eventFilter'>,
): (event: FlowEvent) => boolean {
  const wants = createMatcher(endpoint.eventFilter, 'eventFilter', 'published')
  return (event) => (event.tenant ?? '') === endpoint.tenant && wants(event) && mayReceive(endpoint, event)
}

function invalid(field: string, what: string): SluiceError {
  return new SluiceError('ENDPOINT_INVALID', `endpoint: ${field} ${what} Nothing was stored.`)
}
