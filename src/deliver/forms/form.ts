// `Form` is the shape of the bodies that an endpoint gets. `formFault` checks a form, because subscribers choose it.
import { parsePath, PATH_RULE } from '../../flow/paths.ts'
import { isObject } from '../../validate/options.ts'

type FormKind = (typeof KINDS)[number]

export type Form =
  | FormKind
  /** The body of `events`, with further members of each event: a name, and the path of its value, e.g. `data.component`. */
  | { readonly kind: 'events'; readonly fields: Readonly<Record<string, string>> }
  /** `structured` and `binary` are one event a POST. `cloudevents` alone means `structured`. */
  | { readonly kind: 'cloudevents'; readonly mode: CloudEventsMode }

export type CloudEventsMode = (typeof MODES)[number]

const KINDS = ['standard', 'events', 'flat', 'cloudevents', 'slack', 'discord', 'pagerduty'] as const
const MODES = ['structured', 'binary', 'batch'] as const
/** The members that each event has already. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(['id', 'eventType', 'createdAt', 'data', 'data_base64', '__proto__'])
const FIELDS_MAX = 20
const NAME_LENGTH_MAX = 100
const PAGERDUTY_KEY = /^[A-Za-z0-9]{32}$/

export function kindOf(form: Form): FormKind {
  return typeof form === 'string' ? form : form.kind
}

/** `isSingleEventForm` returns whether a body of this form holds one event, so that a batch takes a POST for each. */
export function isSingleEventForm(form: Form): boolean {
  const kind = kindOf(form)
  return kind === 'flat' || (kind === 'cloudevents' && cloudEventsMode(form) !== 'batch')
}

export function cloudEventsMode(form: Form): CloudEventsMode {
  return typeof form === 'object' && form.kind === 'cloudevents' ? form.mode : 'structured'
}

export function formFault(form: unknown): string | undefined {
  if (typeof form === 'string') return isOneOf(KINDS, form) ? undefined : kindFault(form)
  if (!isObject(form)) return kindFault(form)
  const { kind, ...rest } = form as { readonly kind?: unknown; readonly fields?: unknown; readonly mode?: unknown }
  const options = Object.keys(rest).join(', ')
  if (kind === 'events') return options === 'fields' ? fieldsFault(rest.fields) : 'must have kind and fields only.'
  if (kind !== 'cloudevents') return `must be an object only for 'events' and 'cloudevents'.`
  if (options !== 'mode') return 'must have kind and mode only.'
  return isOneOf(MODES, rest.mode) ? undefined : `must have a mode that is ${listOf(MODES)}.`
}

function fieldsFault(fields: unknown): string | undefined {
  if (!isObject(fields)) return 'must have fields that are an object of names and paths.'
  const all = Object.entries(fields as object)
  if (all.length > FIELDS_MAX) return `must have at most ${FIELDS_MAX} fields; got ${all.length}.`
  for (const [name, path] of all as [string, unknown][]) {
    if (name === '' || name.length > NAME_LENGTH_MAX || !name.isWellFormed() || OWN_MEMBERS.has(name)) {
      return `must have fields of 1 to ${NAME_LENGTH_MAX} characters other than ${[...OWN_MEMBERS].join(', ')}; got ${JSON.stringify(name.slice(0, NAME_LENGTH_MAX))}.`
    }
    if (parsePath(path) === undefined) return `must have a path for the field ${JSON.stringify(name)}: ${PATH_RULE}.`
  }
  return undefined
}

/** PagerDuty takes the key of an integration in the body, so the secret of the endpoint is that key. */
export function formSecretFault(form: Form, secret: string): string | undefined {
  if (kindOf(form) !== 'pagerduty' || PAGERDUTY_KEY.test(secret)) return undefined
  return "With the form 'pagerduty', it must be the integration key, which has 32 letters and digits."
}

function kindFault(form: unknown): string {
  const got = typeof form === 'string' ? JSON.stringify(form.slice(0, 50)) : typeof form
  return `must be ${listOf(KINDS)}; got ${got}.`
}

function listOf(words: readonly string[]): string {
  return words
    .map((word) => `'${word}'`)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1')
}

function isOneOf<T>(words: readonly T[], value: unknown): value is T {
  return (words as readonly unknown[]).includes(value)
}
