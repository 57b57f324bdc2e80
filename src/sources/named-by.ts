// Where the names of an event are in a request whose shape only its owner knows: a path into the body, a header, or a function.
import { hash } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { fieldsOf, formOf, isForm } from './form-body.ts'
import { instantOfText } from './instant.ts'
import { isObject, jsonOf, wordOf, type Json } from './json-body.ts'
import { refusal } from './signature.ts'

/** What a function is given. `data` is the body as JSON, or the fields of a form; undefined if it is neither. */
export interface Unnamed {
  readonly headers: Readonly<Record<string, string>>
  readonly data: Json | undefined
}

/** `'data.object.id'`, a path into the body; `'header:x-name'`; or a function. */
export type NamedBy = string | ((request: Unnamed) => string | number | null | undefined)

export interface NamingOptions {
  /** The `type` of the body unless said, else 'received'. Said and not found, the request is refused. */
  readonly type?: NamedBy
  /** By which a re-send is known again. None unless said: then nothing is ever a duplicate. */
  readonly id?: NamedBy
  readonly subject?: NamedBy
  readonly tenant?: NamedBy
  /** When it happened: ISO 8601, or seconds or milliseconds since 1970. */
  readonly time?: NamedBy
}

export const NAMING: readonly (keyof NamingOptions)[] = ['type', 'id', 'subject', 'tenant', 'time']

type Find = (request: Unnamed) => string | undefined
type Finders = Readonly<Partial<Record<keyof NamingOptions, Find>>>

const HEADER = 'header:'
const UNNAMED_TYPE = 'received'

/** The options are checked once; then each request is one event. */
export function eventsNamedBy(
  scheme: string,
  options: NamingOptions,
): (request: ReceivedRequest) => readonly SourceEvent[] | Refusal {
  const find = findersOf(scheme, options)
  return (request) => {
    const readable = readableOf(request)
    if ('code' in readable) return readable
    try {
      const names = named(find, { headers: request.headers, data: readable.data })
      return 'code' in names ? names : [eventNamed(names, readable.body)]
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error)
      return refusal('BODY_NOT_UNDERSTOOD', `A function that names the event threw: ${what}`, 'Correct the function.')
    }
  }
}

function named(find: Finders, unnamed: Unnamed): Names | Refusal {
  const type = find.type === undefined ? (atPath(unnamed.data, ['type']) ?? UNNAMED_TYPE) : find.type(unnamed)
  if (type === undefined) {
    const fix = 'Compare the option type of the source with the body and the headers that were sent.'
    return refusal('BODY_NOT_UNDERSTOOD', 'There is no type where the source looks for it.', fix)
  }
  return {
    type,
    dedupeId: find.id?.(unnamed),
    subject: find.subject?.(unnamed),
    tenant: find.tenant?.(unnamed),
    time: momentOf(find.time?.(unnamed)),
  }
}

/** As a source found them: what is undefined is left out of the event. */
export interface Names {
  readonly type: string
  readonly dedupeId: string | undefined
  readonly subject?: string | undefined
  readonly tenant?: string | undefined
  readonly time?: Millis | undefined
}

export function eventNamed({ type, dedupeId, subject, tenant, time }: Names, body: Uint8Array): SourceEvent {
  return {
    type,
    dedupeId,
    body,
    ...(subject !== undefined && { subject }),
    ...(tenant !== undefined && { tenant }),
    ...(time !== undefined && { time }),
  }
}

/** Where a sender puts the type, if that can be told. */
export function typeAt({ type }: NamingOptions): { readonly type?: string } {
  return typeof type === 'string' ? { type } : {}
}

function findersOf(scheme: string, options: NamingOptions): Finders {
  const given = NAMING.filter((name) => options[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, finderOf(options[name], `${scheme}: ${name}`)]))
}

function finderOf(by: NamedBy | undefined, option: string): Find {
  if (typeof by === 'function') return (unnamed) => nameOf(by(unnamed))
  if (typeof by === 'string' && by.startsWith(HEADER) && by.length > HEADER.length) {
    const header = by.slice(HEADER.length).trim().toLowerCase()
    return ({ headers }) => nameOf(headers[header])
  }
  const path = typeof by === 'string' ? by.split('.') : []
  if (path.length > 0 && !path.includes('') && by !== HEADER) return ({ data }) => atPath(data, path)
  throw new SluiceError(
    'CONFIG_INVALID',
    `${option} is ${JSON.stringify(by)}, not a path like 'data.object.id', 'header:x-name' or a function.`,
  )
}

function atPath(data: Json | undefined, path: readonly string[]): string | undefined {
  let value = data
  for (const step of path) {
    if (Array.isArray(value)) value = INDEX.test(step) ? (value as readonly Json[])[Number(step)] : undefined
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
  }
  return nameOf(value)
}

const INDEX = /^\d+$/

/**
 * An empty text names nothing: taken for an id, it would make all events one. Of one that is longer than a store keeps,
 * the hash tells as well which is which.
 */
export function nameOf(value: unknown): string | undefined {
  const word = wordOf(value as Json | undefined)
  if (word === undefined || word === '' || !word.isWellFormed()) return undefined
  return word.length > NAME_MAX ? `sha256:${hash('sha256', word)}` : word
}

const NAME_MAX = 1_024

/** Numbers are seconds until they are so large that they must be milliseconds. */
export function momentOf(value: string | undefined): Millis | undefined {
  if (value === undefined || !NUMBER.test(value)) return instantOfText(value)
  const at = Number(value) < SECONDS_MAX ? Number(value) * 1_000 : Number(value)
  return at <= LATEST ? Math.floor(at) : undefined
}

const NUMBER = /^\d+(?:\.\d+)?$/
/** As seconds the year 5138, as milliseconds the year 1973. */
const SECONDS_MAX = 1e11
/** The last moment that a Date can be. */
const LATEST: Millis = 8.64e15

interface Readable {
  readonly data: Json | undefined
  /** What handlers get. */
  readonly body: Uint8Array
}

/**
 * The bytes are asked before the content type, which hardly anybody signs: with another one, what is proven must not
 * read otherwise. What says that it is JSON must be; anything else may be bytes that nobody here can read.
 */
function readableOf(request: ReceivedRequest): Readable | Refusal {
  const { body, headers } = request
  const json = jsonOf(body)
  if (!('code' in json)) return { data: json.value, body }
  if (isForm(request)) {
    const form = formOf(request)
    if ('code' in form) return form
    const data = fieldsOf(form)
    return { data, body: Buffer.from(JSON.stringify(data)) }
  }
  const saysJson = /\bjson\b/i.test(headers['content-type'] ?? 'json')
  return saysJson && body.length > 0 ? json : { data: undefined, body }
}
