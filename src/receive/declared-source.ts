// A source as an app declares it: the scheme's own numbers, overruled by what the app says, checked before anything is taken in.
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { BODY_BYTES_MAX } from '../model/event.ts'
import { onlyKnown } from '../model/options.ts'
import type { Source, SourceAnswer } from './source.ts'

export interface SourceOptions {
  /** `/in/<name>` unless said. */
  readonly path?: string
  /** The longest body, in bytes, unpacked. */
  readonly maxBody?: number
  /** How long an event is known by its dedupe id. */
  readonly dedupe?: Duration
  /** Requests of all senders together; beyond it they are answered 429. */
  readonly rate?: { readonly rate: number; readonly per: Duration }
  /** Whether packed bodies (gzip, deflate, br) are unpacked; else they are refused. The signature is that of what is inside. */
  readonly compressed?: boolean
  /** Whether payload and request are sealed in the store, under the key of the app. */
  readonly encrypt?: boolean
}

const KNOWN: ReadonlySet<string> = new Set<keyof SourceOptions>([
  'path',
  'maxBody',
  'dedupe',
  'rate',
  'compressed',
  'encrypt',
])

export interface DeclaredSource {
  readonly name: string
  readonly path: string
  readonly source: Source
  readonly maxBody: number
  readonly maxEvents: number
  readonly dedupeFor: Millis
  readonly compressed: boolean
  readonly encrypt: boolean
  readonly rate: { readonly rate: number; readonly per: Millis } | undefined
}

/** Of one request, which is answered when all of them are stored. */
const EVENTS_MAX = 10_000
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/i

/** Whoever sends to a source of this name could raise alerts. */
const OWN = 'sluice'

/** By the admin API, and by who asks whether the app is well. */
const TAKEN = /^\/(?:v1\/.*|openapi\.json|metrics|healthz|readyz)$/

export function declaredSource(name: string, source: Source, options: SourceOptions): DeclaredSource {
  const refuse = (what: string): never => {
    throw new SluiceError('CONFIG_INVALID', `source ${JSON.stringify(name)}: ${what}`)
  }
  if (typeof name !== 'string' || !NAME.test(name)) refuse('a name is 1 to 64 letters, digits, - and _.')
  if (name.toLowerCase() === OWN)
    refuse('events of that source are by Sluice itself, such as its alerts; choose another.')
  if (typeof source !== 'object' || source === null || typeof source.events !== 'function') {
    refuse("the second argument is a source, as github({ secret }) of 'sluice/sources' makes one.")
  }
  // Fails closed (R3): without a secret only who says so in so many words is let in unverified.
  if (source.verify !== 'none' && typeof source.verify !== 'function')
    refuse("verify is missing; 'none' takes everything.")
  if (source.verify !== 'none' && source.secrets !== 'by-handshake' && !areGood(source.secrets)) {
    refuse("it has no secret, or an empty one; give it one, or say verify: 'none' in so many words.")
  }
  const fault = answerFault(source.answer)
  if (fault !== undefined) refuse(`answer: ${fault}`)
  onlyKnown(options, KNOWN, `source ${JSON.stringify(name)}: `)
  const path = options.path ?? `/in/${name}`
  if (!/^\/[^\s?#]*$/.test(path)) refuse(`path is ${JSON.stringify(path)}; it begins with / and has no ? or #.`)
  // As a URL has it: any other spelling would never be found.
  if (URL.parse(path, 'http://localhost')?.pathname !== path) {
    refuse(`path is ${JSON.stringify(path)}; write it as it is in an address, without .. and // and with %-escapes.`)
  }
  if (TAKEN.test(path)) refuse(`path is ${JSON.stringify(path)}, which the server itself answers; choose another.`)
  const maxBody = options.maxBody ?? source.maxBody ?? DEFAULTS.maxBody
  if (!Number.isSafeInteger(maxBody) || maxBody < 1 || maxBody > BODY_BYTES_MAX)
    refuse(`maxBody is ${maxBody}; it is a number of bytes up to ${BODY_BYTES_MAX}.`)
  const per = options.rate === undefined ? 0 : millis(options.rate.per, `source ${name}.rate.per`)
  if (options.rate !== undefined && !(options.rate.rate > 0 && per > 0)) refuse('rate and per of rate are above 0.')
  const maxEvents = source.maxEvents ?? EVENTS_MAX
  if (!Number.isSafeInteger(maxEvents) || maxEvents < 1) refuse(`maxEvents is ${maxEvents}; it is a number of events.`)
  const dedupeFor = millis(options.dedupe ?? source.dedupeFor ?? DEFAULTS.dedupe, `source ${name}.dedupe`)
  // Signed ahead of time by the tolerance, a request is good for as long again after that time.
  const replayable = 2 * (source.tolerance ?? 0)
  if (dedupeFor < replayable) {
    refuse(`dedupe is ${dedupeFor} ms; a signed request is good for ${replayable} ms, and must be known as long.`)
  }
  return {
    name,
    path,
    source,
    maxBody,
    maxEvents,
    dedupeFor,
    compressed: options.compressed ?? false,
    encrypt: options.encrypt ?? false,
    rate: options.rate === undefined ? undefined : { rate: options.rate.rate, per },
  }
}

/** With an empty one everybody can sign. */
function areGood(secrets: unknown): boolean {
  if (!Array.isArray(secrets) || secrets.length === 0) return false
  return secrets.every((one: unknown) => typeof one === 'string' && one.trim() !== '')
}

/** What is wrong with it would show only when an event is stored, and its sender would send it again and again. */
function answerFault(answer: SourceAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined
  const { status, headers = {}, body = '' } = answer
  if (!Number.isInteger(status) || status < 200 || status > 299) return `status is ${status}; it is from 200 to 299.`
  if (typeof body !== 'string') return 'body is no text.'
  try {
    void new Headers(headers)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
