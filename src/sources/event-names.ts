// This file finds the names of an event in requests whose shape only the user knows: by a path into the body, a header,
// or a function.
import { hash } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type {
  ParsedEvents,
  ReceivedRequest,
  Refusal,
  SignedRequest,
  SignOptions,
  Source,
  SourceEvent,
  SourceResponse,
} from '../receive/source.ts'
import { invalidOption } from '../validate/options.ts'
import { toFields, parseForm, isForm } from './form-body.ts'
import { isObject, parseJson, toWord, type Json } from './json-body.ts'
import { notUnderstood, signJson } from './signature.ts'

/** `NamingInput` is passed to a naming function. `data` is the body as JSON, or the fields of a form; undefined if
    it is neither. */
export interface NamingInput {
  readonly headers: Readonly<Record<string, string>>
  readonly data: Json | undefined
}

/** `NameSelector` is `'data.object.id'`, a path into the body; `'header:x-name'`; or a function. */
export type NameSelector = string | ((request: NamingInput) => string | number | null | undefined)

export interface NamingOptions {
  /** The default is the `type` of the body, or 'received' without one. If this option is set and finds nothing, the
      request is rejected. */
  readonly type?: NameSelector
  /** Identifies a re-send. Without this option, no event is a duplicate. */
  readonly id?: NameSelector
  readonly subject?: NameSelector
  readonly tenant?: NameSelector
  /** When the event happened: ISO 8601, or seconds or milliseconds since 1970. */
  readonly time?: NameSelector
}

export const NAMING_OPTIONS: readonly (keyof NamingOptions)[] = ['type', 'id', 'subject', 'tenant', 'time']

type NameFinder = (request: NamingInput) => string | undefined
type NameFinders = Readonly<Partial<Record<keyof NamingOptions, NameFinder>>>

const HEADER = 'header:'
const UNNAMED_TYPE = 'received'

export interface NamedSourceOptions extends NamingOptions {
  readonly answer?: SourceResponse
}

/** `createNamedSource` is a source whose user says where the names of its one event are. `proof` verifies and signs. */
export function createNamedSource(
  scheme: string,
  { answer, ...naming }: NamedSourceOptions,
  proof: Pick<Source, 'secrets' | 'verify' | 'sign'> & Partial<Source>,
): Source {
  return {
    scheme,
    dedupeFor: '30d',
    events: createNamedEventParser(scheme, naming),
    answer,
    ...proof,
  }
}

/** `signNamed` puts the type of a test request where such a source reads it. */
export function signNamed(
  input: SignOptions,
  { type: at }: NamingOptions,
  proof: Readonly<Record<string, string>> = {},
): SignedRequest {
  const { id, type = 'test' } = input
  const path = typeof at === 'string' ? at : 'type'
  if (!path.startsWith(HEADER)) return signJson(input, { id, ...nest(path.split('.'), type) }, () => proof)
  return signJson(input, { id }, () => ({ [path.slice(HEADER.length).trim().toLowerCase()]: type, ...proof }))
}

function nest([first = '', ...rest]: readonly string[], value: string): Readonly<Record<string, unknown>> {
  return { [first]: rest.length === 0 ? value : nest(rest, value) }
}

/** `createNamedEventParser` checks the options once. Then each request is one event. */
export function createNamedEventParser(
  scheme: string,
  options: NamingOptions,
): (request: ReceivedRequest) => ParsedEvents {
  const find = createFinders(scheme, options)
  return (request) => {
    const readable = readBody(request)
    if ('code' in readable) return readable
    try {
      const names = findNames(find, { headers: request.headers, data: readable.data })
      return 'code' in names ? names : [{ ...names, body: readable.body }]
    } catch (error) {
      const what = messageOf(error)
      return notUnderstood(`A function that names the event threw: ${what}`, 'Correct the function.')
    }
  }
}

function findNames(find: NameFinders, unnamed: NamingInput): Omit<SourceEvent, 'body'> | Refusal {
  const type = find.type === undefined ? (atPath(unnamed.data, ['type']) ?? UNNAMED_TYPE) : find.type(unnamed)
  if (type === undefined) {
    const fix = 'Compare the option type of the source with the body and the headers that were sent.'
    return notUnderstood('The request has no type where the source reads it.', fix)
  }
  return {
    type,
    dedupeId: find.id?.(unnamed),
    subject: find.subject?.(unnamed),
    tenant: find.tenant?.(unnamed),
    time: parseTime(find.time?.(unnamed)),
  }
}

function createFinders(scheme: string, options: NamingOptions): NameFinders {
  const given = NAMING_OPTIONS.filter((name) => options[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, createFinder(options[name], `${scheme}: ${name}`)]))
}

function createFinder(by: NameSelector | undefined, option: string): NameFinder {
  if (typeof by === 'function') return (unnamed) => toName(by(unnamed))
  if (typeof by === 'string' && by.startsWith(HEADER) && by.length > HEADER.length) {
    const header = by.slice(HEADER.length).trim().toLowerCase()
    return ({ headers }) => toName(headers[header])
  }
  const path = typeof by === 'string' ? by.split('.') : []
  if (path.length > 0 && !path.includes('') && by !== HEADER) return ({ data }) => atPath(data, path)
  const rule = "a path like 'data.object.id', 'header:x-name' or a function"
  throw invalidOption(`${option} must be ${rule}; got ${JSON.stringify(by)}.`)
}

function atPath(data: Json | undefined, path: readonly string[]): string | undefined {
  let value = data
  for (const step of path) {
    if (Array.isArray(value)) value = INDEX.test(step) ? (value as readonly Json[])[Number(step)] : undefined
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
  }
  return toName(value)
}

const INDEX = /^\d+$/

/** `toName` returns undefined for an empty text: as an id, it would make all events one. A text longer than a store
    allows becomes its hash, which identifies it as well. */
export function toName(value: unknown): string | undefined {
  const word = toWord(value as Json | undefined)
  if (word === undefined || word === '' || !word.isWellFormed()) return undefined
  return word.length > NAME_MAX ? `sha256:${hash('sha256', word)}` : word
}

const NAME_MAX = 1_024

/** `parseTime` reads numbers as seconds, unless they are so large that they must be milliseconds. */
export function parseTime(value: string | undefined): Millis | undefined {
  if (value === undefined || !NUMBER.test(value)) return parseTimestamp(value)
  const at = Number(value) < SECONDS_MAX ? Number(value) * 1_000 : Number(value)
  return at <= LATEST ? Math.floor(at) : undefined
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:Z|[+-]\d\d:\d\d)$/

export function parseTimestamp(text: string | undefined): Millis | undefined {
  const upper = text?.toUpperCase() ?? ''
  const at = RFC_3339.test(upper) ? Date.parse(upper) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

export function parseUnixSeconds(seconds: string | undefined): Millis | undefined {
  return seconds !== undefined && /^\d{1,11}$/.test(seconds) ? Number(seconds) * 1_000 : undefined
}

const NUMBER = /^\d+(?:\.\d+)?$/
/** As seconds this is the year 5138, as milliseconds the year 1973. */
const SECONDS_MAX = 1e11
/** The latest time that a Date can hold. */
const LATEST: Millis = 8.64e15

interface ReadableBody {
  readonly data: Json | undefined
  /** The bytes that handlers get. */
  readonly body: Uint8Array
}

/** `readBody` decides by the bytes before the content type, which hardly any sender signs: changing it must not
    change how verified bytes are read. A body declared as JSON must be JSON. Any other body may be opaque bytes. */
function readBody(request: ReceivedRequest): ReadableBody | Refusal {
  const { body, headers } = request
  const json = parseJson(body)
  if (!('code' in json)) return { data: json.value, body }
  if (isForm(request)) {
    const form = parseForm(request)
    if ('code' in form) return form
    const data = toFields(form)
    return { data, body: Buffer.from(JSON.stringify(data)) }
  }
  const saysJson = /\bjson\b/i.test(headers['content-type'] ?? 'json')
  return saysJson && body.length > 0 ? json : { data: undefined, body }
}
