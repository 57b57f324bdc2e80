// This file finds the names of an event in requests whose shape only the user knows: by a path into the body, a header,
// or a function.
import { hash } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { toFields, parseForm, isForm } from './form-body.ts'
import { parseTimestamp } from './instant.ts'
import { isObject, parseJson, toWord, type Json } from './json-body.ts'
import { refusal } from './signature.ts'

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

/** `createNamedEventParser` checks the options once. Then each request is one event. */
export function createNamedEventParser(
  scheme: string,
  options: NamingOptions,
): (request: ReceivedRequest) => readonly SourceEvent[] | Refusal {
  const find = createFinders(scheme, options)
  return (request) => {
    const readable = readBody(request)
    if ('code' in readable) return readable
    try {
      const names = findNames(find, { headers: request.headers, data: readable.data })
      return 'code' in names ? names : [toNamedEvent(names, readable.body)]
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error)
      return refusal('BODY_NOT_UNDERSTOOD', `A function that names the event threw: ${what}`, 'Correct the function.')
    }
  }
}

function findNames(find: NameFinders, unnamed: NamingInput): EventNames | Refusal {
  const type = find.type === undefined ? (atPath(unnamed.data, ['type']) ?? UNNAMED_TYPE) : find.type(unnamed)
  if (type === undefined) {
    const fix = 'Compare the option type of the source with the body and the headers that were sent.'
    return refusal('BODY_NOT_UNDERSTOOD', 'The request has no type where the source reads it.', fix)
  }
  return {
    type,
    dedupeId: find.id?.(unnamed),
    subject: find.subject?.(unnamed),
    tenant: find.tenant?.(unnamed),
    time: parseTime(find.time?.(unnamed)),
  }
}

/** `EventNames` are the names a source found. Undefined ones are left out of the event. */
export interface EventNames {
  readonly type: string
  readonly dedupeId: string | undefined
  readonly subject?: string | undefined
  readonly tenant?: string | undefined
  readonly time?: Millis | undefined
}

export function toNamedEvent({ type, dedupeId, subject, tenant, time }: EventNames, body: Uint8Array): SourceEvent {
  return {
    type,
    dedupeId,
    body,
    ...(subject !== undefined && { subject }),
    ...(tenant !== undefined && { tenant }),
    ...(time !== undefined && { time }),
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
  throw new SluiceError(
    'CONFIG_INVALID',
    `${option} must be a path like 'data.object.id', 'header:x-name' or a function; got ${JSON.stringify(by)}.`,
  )
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
