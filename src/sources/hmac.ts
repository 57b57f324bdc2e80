// `hmac` receives from any sender that signs with a shared secret. Options say which MAC, in which header, over which
// content.
import { SluiceError } from '../errors.ts'
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { Source } from '../receive/source.ts'
import {
  createNamedSource,
  NAMING_OPTIONS,
  signNamed,
  type NamedSourceOptions,
  type NameSelector,
} from './event-names.ts'
import {
  WRONG_SIGNATURE,
  computeMac,
  formatSeconds,
  hasValidMac,
  parseSecrets,
  timestampFault,
  parseTolerance,
  missingSignature,
  type Algorithm,
  type Secrets,
} from './signature.ts'
import { createSignedContent, type SignedContent } from './signed-content.ts'

/** With a `timestamp`, `id` defaults to the signature. */
export interface HmacOptions extends NamedSourceOptions {
  readonly secret: Secrets
  readonly header: string
  /** The default is 'sha256'. */
  readonly algorithm?: Algorithm
  /** The default is 'hex', in either case. */
  readonly encoding?: 'hex' | 'base64'
  /** The text before the signature in its header, e.g. 'sha256='. */
  readonly prefix?: string
  /** The header with the time of signing, in seconds since 1970; milliseconds are accepted too. */
  readonly timestamp?: string
  readonly tolerance?: Duration
  /** A pattern or a function. The default is `'{body}'`, or `'{timestamp}.{body}'` with a timestamp. */
  readonly signed?: SignedContent
}

const ALGORITHMS: readonly unknown[] = ['sha1', 'sha256', 'sha384', 'sha512'] satisfies Algorithm[]

export function hmac(options: HmacOptions): Source {
  assertKnownOptions(
    options,
    [
      'secret',
      'header',
      'algorithm',
      'encoding',
      'prefix',
      'timestamp',
      'tolerance',
      'signed',
      'answer',
      ...NAMING_OPTIONS,
    ],
    'hmac: ',
  )
  const { algorithm = 'sha256', encoding = 'hex', prefix = '' } = options
  const header = parseHeaderName(options.header, 'header')
  const timestamp = options.timestamp === undefined ? undefined : parseHeaderName(options.timestamp, 'timestamp')
  if (!ALGORITHMS.includes(algorithm)) throw invalid(`algorithm must be one of ${ALGORITHMS.join(', ')}.`)
  if (encoding !== 'hex' && encoding !== 'base64') throw invalid("encoding must be 'hex' or 'base64'.")
  if (timestamp === undefined && options.tolerance !== undefined)
    throw invalid('tolerance needs a timestamp. Set timestamp to its header.')
  const tolerance = parseTolerance('hmac', options.tolerance)
  const content = createSignedContent(options.signed, timestamp)
  // Some senders write hex in capitals.
  const signatureIn = (value: string | undefined): string => {
    const signature = value?.slice(prefix.length) ?? ''
    return encoding === 'hex' ? signature.toLowerCase() : signature
  }
  // If the time is signed, two requests with the same signature are one request that was sent again. Without a time,
  // two events with the same content have the same signature.
  const bySignature: NameSelector = ({ headers }) => signatureIn(headers[header])
  const naming = timestamp === undefined || options.id !== undefined ? options : { ...options, id: bySignature }
  return createNamedSource('hmac', naming, {
    secrets: parseSecrets('hmac', options.secret),
    dedupeFor: timestamp === undefined ? '30d' : '7d',
    tolerance: timestamp === undefined ? undefined : tolerance,
    verify: (request, { now, secrets }) => {
      const given = request.headers[header]
      if (given === undefined) return missingSignature(header)
      const time = timestamp === undefined ? undefined : toSeconds(request.headers[timestamp])
      if (time === '') return timestampFault(time, now, tolerance)
      const parts = content(request)
      if ('code' in parts) return parts
      if (!given.startsWith(prefix)) return WRONG_SIGNATURE
      if (!hasValidMac([signatureIn(given)], parts, secrets, { algorithm, encoding })) return WRONG_SIGNATURE
      return time === undefined ? undefined : timestampFault(time, now, tolerance)
    },
    sign: (input) => {
      const request = signNamed(
        input,
        options,
        timestamp === undefined ? {} : { [timestamp]: formatSeconds(input.now) },
      )
      const parts = content({ ...request, method: 'POST', address: '127.0.0.1' })
      if ('code' in parts) return `${parts.what} ${parts.fix}`
      const mac = computeMac(input.secret, parts, { algorithm, encoding, prefix })
      return { ...request, headers: { ...request.headers, [header]: mac } }
    },
  })
}

/** `toSeconds` cuts the three last digits of milliseconds, and returns '' for a missing time. */
function toSeconds(time: string = ''): string {
  return /^\d{13,15}$/.test(time) ? time.slice(0, -3) : time
}

function parseHeaderName(name: unknown, option: string): string {
  if (typeof name === 'string' && /^[\w-]+$/.test(name)) return name.toLowerCase()
  throw invalid(`${option} must be the name of a header, such as 'x-signature'.`)
}

function invalid(message: string): SluiceError {
  return invalidOption(`hmac: ${message}`)
}
