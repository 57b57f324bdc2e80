// `DeliverySettings` are the options of all deliveries of an app. The check names the invalid option and its fix.
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { deniedNetworks, type GuardRules } from './http/addresses.ts'
import { isHeaderText } from './http/headers.ts'
import type { OwnershipProof } from './proof.ts'
import { SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'

/** The option `delivery` of `new Sluice()`. */
export interface DeliverySettings extends Pick<GuardRules, 'allowLoopback'> {
  /** Networks (CIDR) and addresses that are denied in addition to the built-in list, e.g. `['203.0.114.0/24']`. */
  readonly deny?: readonly string[]
  /** For one POST, from the lookup of the name to the last byte of the response. Default 30 s. */
  readonly deadline?: Duration
  readonly userAgent?: string
  /** The proof that an endpoint must give before events are posted to it. Default `none`. */
  readonly proof?: OwnershipProof['kind']
  /** The host name of this app, for `proof: 'cloudevents'`. */
  readonly origin?: string
  /** How many endpoints one address, and one key, may register, move or prove over the API. Default 60 per minute. */
  readonly registrations?: { readonly rate: number; readonly per: Duration }
}

export interface ResolvedDeliverySettings {
  readonly rules: GuardRules
  readonly deadline: Millis
  readonly userAgent: string
  readonly proof: OwnershipProof
  readonly registrations: { readonly rate: number; readonly per: Millis }
}

const SETTINGS: ReadonlySet<string> = new Set<keyof DeliverySettings>([
  'allowLoopback',
  'deny',
  'deadline',
  'userAgent',
  'proof',
  'origin',
  'registrations',
])
const DEADLINE: Duration = '30s'

export function parseDeliverySettings(settings: DeliverySettings): ResolvedDeliverySettings {
  assertKnownOptions(settings, SETTINGS, 'new Sluice: delivery.')
  const { allowLoopback = false, deny = [] } = settings
  return {
    rules: { allowLoopback, denied: deniedNetworks(deny) },
    deadline: parseDuration(settings.deadline ?? DEADLINE, 'delivery.deadline'),
    userAgent: parseUserAgent(settings),
    proof: parseProof(settings),
    registrations: parseRegistrations(settings),
  }
}

function parseUserAgent({ userAgent = 'Sluice' }: DeliverySettings): string {
  if (typeof userAgent === 'string' && isHeaderText(userAgent)) return userAgent
  throw invalid(`userAgent must be plain printable text, e.g. acme-hooks/1.0; got ${JSON.stringify(userAgent)}.`)
}

const HOST = /^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/i

function parseProof({ proof = 'none', origin }: DeliverySettings): OwnershipProof {
  if (proof !== 'none' && proof !== 'challenge' && proof !== 'cloudevents') {
    throw invalid(`proof must be 'none', 'challenge' or 'cloudevents'; got ${JSON.stringify(proof)}.`)
  }
  if (origin !== undefined && proof !== 'cloudevents')
    throw invalid("origin must be used with proof: 'cloudevents' only.")
  if (proof !== 'cloudevents') return { kind: proof }
  if (typeof origin === 'string' && HOST.test(origin)) return { kind: proof, origin }
  throw invalid(`origin must be a host name, e.g. hooks.example.com; got ${JSON.stringify(origin)}.`)
}

function parseRegistrations({
  registrations = DEFAULTS.registrations,
}: DeliverySettings): ResolvedDeliverySettings['registrations'] {
  const { rate } = registrations
  const per = parseDuration(registrations.per, 'delivery.registrations.per')
  if (rate > 0 && per > 0) return { rate, per }
  throw invalid('registrations: rate and per must be above 0. Infinity means no limit.')
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `new Sluice: delivery.${what}`)
}
