// `createDeclaredSource` merges the options of the app with the defaults of the scheme, and checks them before the
// source accepts requests.
import type { Millis } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { DEFAULTS } from '../defaults.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { BODY_BYTES_MAX } from '../model/event.ts'
import {
  assertKnownOptions,
  assertWholeNumber,
  describeKind,
  describeTexts,
  invalidOption,
} from '../validate/options.ts'
import type { Source, SourceResponse } from './source.ts'

export interface SourceOptions {
  /** The default is `/in/<name>`. A path that ends in `/*` takes requests to any path below it. */
  readonly path?: string
  /** With a path that ends in `/*`: the only endings that senders use. Other paths get 404. The default is any. */
  readonly suffixes?: readonly string[]
  /** The maximum length of the decompressed body, in bytes. */
  readonly maxBody?: number
  /** How long the dedupe id of an event is remembered. */
  readonly dedupe?: Duration
  /** The rate of all senders together. Requests beyond it get 429. */
  readonly rate?: { readonly rate: number; readonly per: Duration }
  /** The rate of the requests about one subject, e.g. a person at the provider. Requests beyond it get 429. */
  readonly subjectRate?: { readonly rate: number; readonly per: Duration }
  /** Whether compressed bodies (gzip, deflate, br) are decompressed. Otherwise they are rejected. The signature
      covers the decompressed bytes. */
  readonly compressed?: boolean
  /** Whether payload and request are encrypted in the store, with the key of the app. */
  readonly encrypt?: boolean
}

export interface DeclaredSource {
  readonly name: string
  /** Ends in `/*` if the source takes requests to any path below it. */
  readonly path: string
  /** The endings that senders use; undefined if any ending is accepted. */
  readonly suffixes: readonly string[] | undefined
  readonly source: Source
  readonly maxBody: number
  readonly maxEvents: number
  readonly dedupeFor: Millis
  readonly compressed: boolean
  readonly encrypt: boolean
  readonly rate: SourceRate | undefined
  readonly subjectRate: SourceRate | undefined
}

interface SourceRate {
  readonly rate: number
  readonly per: Millis
}

/** The default for the events of one request, which gets its response when all of them are stored. */
const MAX_EVENTS = 10_000
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/i

const OPTIONS = ['path', 'suffixes', 'maxBody', 'dedupe', 'rate', 'subjectRate', 'compressed', 'encrypt'] as const

/** Anyone who sends to a source of this name could raise alerts. */
const RESERVED_NAME = 'sluice'

/** The admin API and health checks use these paths. */
export const RESERVED_PATHS: RegExp = /^\/(?:v1\/.*|openapi\.json|metrics|healthz|readyz)$/

export function createDeclaredSource(name: string, source: Source, options: SourceOptions): DeclaredSource {
  const where = `source ${JSON.stringify(name)}: `
  const refuse = (message: string): never => {
    throw invalidOption(where + message)
  }
  if (typeof name !== 'string' || !NAME.test(name)) refuse('name must be 1 to 64 letters, digits, - or _.')
  if (name.toLowerCase() === RESERVED_NAME)
    refuse('the name is reserved for events of Sluice itself, e.g. alerts. Choose another name.')
  if (typeof source !== 'object' || source === null || typeof source.events !== 'function') {
    refuse("the second argument must be a source, e.g. github({ secret }) from 'sluice/sources'.")
  }
  // Fails closed (R3): a source without a secret must declare `verify: 'none'`.
  if (source.verify !== 'none' && typeof source.verify !== 'function')
    refuse("verify must be a function, or 'none' to accept every request.")
  if (source.verify !== 'none' && source.secrets !== 'by-handshake' && !areUsableSecrets(source.secrets)) {
    refuse(
      `secrets must be a list of non-empty texts; got ${describeSecrets(source.secrets)}. Pass a secret, or set verify: 'none'.`,
    )
  }
  const fault = responseFault(source.answer)
  if (fault !== undefined) refuse(`answer: ${fault}`)
  assertKnownOptions(options, OPTIONS, where)
  const path = options.path ?? `/in/${name}`
  if (!/^\/(?:[^\s?#*]*|[^\s?#*]*\/\*)$/.test(path))
    refuse(`path must begin with /, have no space, ?, # or *, and may end in /*; got ${JSON.stringify(path)}.`)
  // The path must be spelled as in a URL: no request would match any other spelling.
  if (URL.parse(path, 'http://localhost')?.pathname !== path) {
    refuse(`path must be spelled as in a URL, without .. and // and with %-escapes; got ${JSON.stringify(path)}.`)
  }
  if (RESERVED_PATHS.test(path))
    refuse(`path must not be one of the server itself; got ${JSON.stringify(path)}. Choose another path.`)
  const { suffixes } = options
  if (suffixes !== undefined && !path.endsWith('/*'))
    refuse(`suffixes must come with a path that ends in /*; got ${JSON.stringify(path)}.`)
  if (suffixes !== undefined && !areSuffixes(suffixes))
    refuse(`suffixes must be a list of path endings like 'sleeps', without a / at either end.`)
  const maxBody = options.maxBody ?? source.maxBody ?? DEFAULTS.maxBody
  if (!Number.isSafeInteger(maxBody) || maxBody < 1 || maxBody > BODY_BYTES_MAX)
    refuse(`maxBody must be a whole number of bytes from 1 to ${BODY_BYTES_MAX}; got ${maxBody}.`)
  const [rate, subjectRate] = (['rate', 'subjectRate'] as const).map((option) => {
    const given = options[option]
    if (given === undefined) return undefined
    const per = parseDuration(given.per, `source ${name}.${option}.per`)
    return given.rate > 0 && per > 0
      ? { rate: given.rate, per }
      : refuse(`${option}.rate and ${option}.per must be above 0.`)
  })
  const maxEvents = assertWholeNumber(source.maxEvents ?? MAX_EVENTS, 1, `${where}maxEvents`)
  const dedupeFor = parseDuration(options.dedupe ?? source.dedupeFor ?? DEFAULTS.dedupe, `source ${name}.dedupe`)
  // A request signed ahead of time by the tolerance stays valid for as long again after that time.
  const replayable = 2 * (source.tolerance ?? 0)
  if (dedupeFor < replayable) {
    refuse(
      `dedupe must be at least ${replayable} ms, because a signed request stays valid that long; got ${dedupeFor} ms.`,
    )
  }
  return {
    name,
    path,
    suffixes,
    source,
    maxBody,
    maxEvents,
    dedupeFor,
    compressed: options.compressed ?? false,
    encrypt: options.encrypt ?? false,
    rate,
    subjectRate,
  }
}

function areSuffixes(suffixes: unknown): boolean {
  if (!Array.isArray(suffixes) || suffixes.length === 0) return false
  return suffixes.every((one: unknown) => typeof one === 'string' && /^[^\s?#*/]+(?:\/[^\s?#*/]+)*$/.test(one))
}

function describeSecrets(secrets: unknown): string {
  return Array.isArray(secrets) ? describeTexts(secrets) : describeKind(secrets)
}

/** `areUsableSecrets` rejects an empty secret: with it, anybody can sign. */
function areUsableSecrets(secrets: unknown): boolean {
  if (!Array.isArray(secrets) || secrets.length === 0) return false
  return secrets.every((one: unknown) => typeof one === 'string' && one.trim() !== '')
}

/** `responseFault` finds faults that would otherwise show only after an event is stored: its sender would send it
    again and again. */
function responseFault(answer: SourceResponse | undefined): string | undefined {
  if (answer === undefined) return undefined
  const { status, headers = {}, body = '' } = answer
  if (!Number.isInteger(status) || status < 200 || status > 299) return `status must be from 200 to 299; got ${status}.`
  if (typeof body !== 'string') return 'body must be a string.'
  try {
    void new Headers(headers)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
