// One subscriber: where its batches go, what it asked for, and how it knows that they are from us. Checked when it is given,
// with one message that names the field and the fix.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { limitSettings } from '../limit/options.ts'
import type { Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import { matcher } from '../model/globs.ts'
import { checkUrl, URL_LENGTH_MAX, type GuardRules } from './addresses.ts'
import { headersFault, joined, type Headers, type HeadersChange } from './headers.ts'
import { mayHear } from './news.ts'
import { secretFaultFor, signingFault, type Signing } from './signing.ts'

export interface EndpointFields {
  /** For people. */
  readonly name: string
  readonly url: string
  /** Globs over types of events; all unless said. */
  readonly eventFilter: readonly string[]
  /** Only its own events reach it; '' is for events of no tenant. */
  readonly tenant: string
  readonly description: string
  readonly headers: Headers
  readonly signing: Signing
  /** Standard: `{ type, timestamp, data: { events } }`; events: `{ events }`. */
  readonly form: 'standard' | 'events'
  /** So many POSTs in any stretch of time as long as `per`, over all processes; null for no such limit. */
  readonly rate: EndpointRate | null
}

export interface EndpointRate {
  readonly rate: number
  readonly per: Duration
}

export interface Endpoint extends Omit<EndpointFields, 'headers'> {
  readonly id: string
  /** Their names: values are sealed like secrets, and not shown. */
  readonly headers: readonly string[]
  readonly createdAt: Millis
  /** False: its events wait. */
  readonly active: boolean
  /** Whether its owner has proven it. While that is pending nothing is routed to it; `none` was not asked of it. */
  readonly proof: 'none' | 'pending' | 'proven'
}

export type NewEndpoint = Pick<EndpointFields, 'url'> & Partial<Omit<EndpointFields, 'eventFilter'>> & Given

interface Given {
  /** Null, or an empty list, is all. */
  readonly eventFilter?: readonly string[] | null
  /** False: it is paused. */
  readonly active?: boolean
  /** At least 16 bytes, or `whsec_` and base64. A new endpoint without one is given one; another than it has is rotated in. */
  readonly secret?: string
}

/** The tenant is for good: what waits for one must not reach another. */
export type EndpointChange = Partial<Omit<EndpointFields, 'tenant' | 'headers' | 'eventFilter'>> &
  Given & {
    /** What is not named stays. */
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
const FILTERS_MAX = 100
const SECRET_BEFORE = 'the secret before, which counts until its day is over or it is ended by force,'

const UNSAID: Omit<EndpointFields, 'url' | 'eventFilter'> = {
  name: '',
  tenant: '',
  description: '',
  headers: {},
  signing: { kind: 'standard' },
  form: 'standard',
  rate: null,
}

/** `secrets`: all that are active. The one before the newest is sent as well, or even alone. */
export function endpointFields(given: NewEndpoint, secrets: readonly string[], rules: GuardRules): EndpointFields {
  if (typeof given !== 'object' || given === null) throw invalid('url', 'missing; it is where batches are posted to')
  onlyKnown(given, FIELDS, 'endpoint: ')
  const { secret: _secret, active = true, eventFilter, ...said } = given
  const fields: EndpointFields = { ...UNSAID, ...said, eventFilter: filterOf(eventFilter) }
  for (const field of ['name', 'tenant', 'description', 'url'] as const) {
    const text: unknown = fields[field]
    const most = field === 'url' ? URL_LENGTH_MAX : TEXT_MAX
    if (typeof text !== 'string' || !text.isWellFormed() || text.length > most) {
      throw invalid(field, `no text of at most ${most} characters`)
    }
  }
  const checked = checkUrl(fields.url, rules)
  if (checked.kind === 'forbidden') throw invalid('url', `not one that is posted to (${checked.why})`)
  if (typeof active !== 'boolean') throw invalid('active', 'neither true nor false')
  const badHeaders = headersFault(fields.headers)
  if (badHeaders !== undefined) throw invalid('headers', `refused: ${badHeaders}`)
  const badSigning = signingFault(fields.signing)
  if (badSigning !== undefined) throw invalid('signing', `refused: ${badSigning}`)
  for (const [at, secret] of secrets.entries()) {
    const fault = secretFaultFor(fields.signing, secret)
    if (fault !== undefined) throw invalid(at === 0 ? 'secret' : SECRET_BEFORE, `refused: ${fault}`)
  }
  if (fields.form !== 'standard' && fields.form !== 'events') throw invalid('form', `neither 'standard' nor 'events'`)
  mustBeRate(fields.rate)
  return { ...fields, headers: joined(fields.headers) }
}

/** What no limit could keep is no rate. */
function mustBeRate(rate: unknown): void {
  if (rate === null) return
  try {
    limitSettings('rate', rate as EndpointRate)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw invalid('rate', `refused: ${error.message}`)
  }
}

function filterOf(asked: NewEndpoint['eventFilter']): readonly string[] {
  const filter = asked ?? []
  if (!Array.isArray(filter) || filter.length > FILTERS_MAX) {
    throw invalid('eventFilter', `no list of at most ${FILTERS_MAX} types; leave it out for all`)
  }
  if (filter.length === 0) return ['**']
  matcher(filter, 'endpoint: eventFilter')
  return filter as readonly string[]
}

/** Which of them get an event. */
export function wantedBy(endpoint: Pick<Endpoint, 'id' | 'tenant' | 'eventFilter'>): (event: FlowEvent) => boolean {
  const wants = matcher(endpoint.eventFilter, 'eventFilter')
  return (event) => (event.tenant ?? '') === endpoint.tenant && wants(event) && mayHear(endpoint, event)
}

function invalid(field: string, what: string): SluiceError {
  return new SluiceError('ENDPOINT_INVALID', `endpoint: ${field} is ${what}; nothing was stored.`)
}
