// `Alert` is who is notified about what. `parseAlert` and `parseChange` check what the API gets, and name the faulty field.
import { z } from 'zod'
import { DEFAULT_DEBOUNCING, isPreset, PRESETS, type Debouncing } from './debouncing.ts'
import { EVENT_TYPES, type EventType } from './event-types.ts'

export type AlertType = 'general' | 'slack' | 'pagerduty'

export interface Alert {
  readonly id: string
  readonly workspace: string
  readonly name: string
  readonly alert_type: AlertType
  readonly event_types: readonly EventType[]
  readonly enabled: boolean
  readonly debouncing: Debouncing
  /** The endpoint with the URL, the headers and the secret. */
  readonly endpoint: string
  readonly created_at: number
}

/** The longest window: an alert about events of yesterday is none. */
const WINDOW_MAX = 86_400_000

const debouncing = z.preprocess(
  (given) => (isPreset(given) ? PRESETS[given] : given),
  z.strictObject(
    {
      enabled: z.boolean().default(true),
      window_size: z.int().min(100).max(WINDOW_MAX).default(DEFAULT_DEBOUNCING.window_size),
    },
    { error: `must be ${Object.keys(PRESETS).join(', ')}, or an object with enabled and window_size` },
  ),
)

const changeable = {
  name: z.string().min(1).max(255),
  url: z.url().max(2_048),
  headers: z.record(z.string(), z.string()),
  secret_token: z.string().min(1).max(250).nullable(),
  event_types: z.array(z.enum(EVENT_TYPES)).min(1),
  enabled: z.boolean(),
  debouncing,
}

const created = z.strictObject({
  ...changeable,
  workspace: z.string().min(1).max(255),
  alert_type: z.enum(['general', 'slack', 'pagerduty']),
  headers: changeable.headers.default({}),
  secret_token: changeable.secret_token.default(null),
  enabled: changeable.enabled.default(true),
  debouncing: debouncing.default(DEFAULT_DEBOUNCING),
})

const changed = z
  .strictObject({
    ...changeable,
    // A header that is null is removed.
    headers: z.record(z.string(), z.string().nullable()),
  })
  .partial()

export type NewAlert = z.infer<typeof created>
/** JSON has no `undefined`: a field is there or not. */
type Given<T> = { readonly [Field in keyof T]?: Exclude<T[Field], undefined> }
export type AlertChange = Given<z.infer<typeof changed>>

/** `InvalidAlert` is what the API answers with 400. */
export class InvalidAlert extends Error {
  override readonly name = 'InvalidAlert'
}

export function parseAlert(given: unknown): NewAlert {
  const alert = parse(created, given)
  assertReachable(alert)
  return alert
}

export function parseChange(given: unknown): AlertChange {
  return parse(changed, given) as AlertChange
}

function assertReachable({ alert_type, secret_token, headers }: NewAlert): void {
  if (alert_type === 'pagerduty' && secret_token === null)
    throw new InvalidAlert('secret_token must be the integration key of PagerDuty; got none.')
  if (alert_type === 'slack' && secret_token !== null)
    throw new InvalidAlert('secret_token must be omitted for Slack, because the URL is the secret.')
  assertOneAuthorization(headers, secret_token)
}

export function assertOneAuthorization(headers: object = {}, token: string | null = null): void {
  if (token !== null && Object.keys(headers).some((name) => name.toLowerCase() === 'authorization'))
    throw new InvalidAlert('headers must not have authorization beside a secret_token. Remove one of them.')
}

function parse<Output>(schema: z.ZodType<Output>, given: unknown): Output {
  const { data, error } = schema.safeParse(given)
  if (error === undefined) return data
  const issues = error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  )
  throw new InvalidAlert(`${issues.join('; ')}.`)
}
