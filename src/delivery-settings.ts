// What an app says of all its deliveries, checked: one message names the option that is wrong and the fix.
import type { Millis } from './clock.ts'
import { DEFAULTS } from './config.ts'
import type { GuardRules } from './deliver/addresses.ts'
import { isHeaderText } from './deliver/headers.ts'
import type { Proof } from './deliver/proof.ts'
import { SluiceError } from './errors.ts'
import { millis, type Duration } from './model/duration.ts'
import { onlyKnown } from './model/options.ts'

/** Of all deliveries of an app. */
export interface DeliverySettings extends GuardRules {
  /** For one POST, from the lookup of its name to the last byte of its answer: 30 s unless said. */
  readonly deadline?: Duration
  readonly userAgent?: string
  /** What is asked of an endpoint before anything is posted to it: nothing, unless said. */
  readonly proof?: Proof['kind']
  /** The name of the host that we are, for `proof: 'cloudevents'`. */
  readonly origin?: string
  /** How many endpoints one address, and one key, may register, move or have proven over the API: 60 a minute unless said. */
  readonly registrations?: { readonly rate: number; readonly per: Duration }
}

export interface DeliveryNumbers {
  readonly deadline: Millis
  readonly userAgent: string
  readonly proof: Proof
  readonly registrations: { readonly rate: number; readonly per: Millis }
}

const SETTINGS: ReadonlySet<string> = new Set<keyof DeliverySettings>([
  'allowLoopback',
  'deadline',
  'userAgent',
  'proof',
  'origin',
  'registrations',
])
const DEADLINE: Duration = '30s'

export function deliveryNumbers(settings: DeliverySettings): DeliveryNumbers {
  onlyKnown(settings, SETTINGS, 'new Sluice: delivery.')
  return {
    deadline: millis(settings.deadline ?? DEADLINE, 'delivery.deadline'),
    userAgent: userAgentOf(settings),
    proof: proofOf(settings),
    registrations: registrationsOf(settings),
  }
}

function userAgentOf({ userAgent = 'Sluice' }: DeliverySettings): string {
  if (typeof userAgent === 'string' && isHeaderText(userAgent)) return userAgent
  throw invalid(`userAgent is ${JSON.stringify(userAgent)}; it is plain printable text, as acme-hooks/1.0.`)
}

const HOST = /^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/i

function proofOf({ proof = 'none', origin }: DeliverySettings): Proof {
  if (proof !== 'none' && proof !== 'challenge' && proof !== 'cloudevents') {
    throw invalid(`proof is ${JSON.stringify(proof)}; it is 'none', 'challenge' or 'cloudevents'.`)
  }
  if (origin !== undefined && proof !== 'cloudevents') throw invalid("origin goes with proof: 'cloudevents' only.")
  if (proof !== 'cloudevents') return { kind: proof }
  if (typeof origin === 'string' && HOST.test(origin)) return { kind: proof, origin }
  throw invalid(`origin is ${JSON.stringify(origin)}; it is the name of a host, as hooks.example.com.`)
}

function registrationsOf({
  registrations = DEFAULTS.registrations,
}: DeliverySettings): DeliveryNumbers['registrations'] {
  const { rate } = registrations
  const per = millis(registrations.per, 'delivery.registrations.per')
  if (rate > 0 && per > 0) return { rate, per }
  throw invalid('registrations: rate and per are above 0; Infinity is no limit.')
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `new Sluice: delivery.${what}`)
}
