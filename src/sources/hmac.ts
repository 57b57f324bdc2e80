// Any scheme by which a sender signs with a shared secret: which MAC, in which header, over what, is said in options.
import { SluiceError } from '../errors.ts'
import type { Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { Source, SourceAnswer } from '../receive/source.ts'
import { eventsNamedBy, NAMING, typeAt, type NamingOptions } from './named-by.ts'
import { FORGED, isSigned, secretsOf, timeFault, toleranceOf, unsigned, type Algorithm } from './signature.ts'
import { signedContent, type SignedContent } from './signed-content.ts'

export interface HmacOptions extends NamingOptions {
  readonly secret: string | readonly string[]
  /** Of the signature. */
  readonly header: string
  /** 'sha256' unless said. */
  readonly algorithm?: Algorithm
  /** 'hex' unless said, in either case. */
  readonly encoding?: 'hex' | 'base64'
  /** Before the signature in its header: 'sha256='. */
  readonly prefix?: string
  /** A header with the time at which it was signed, in seconds since 1970; milliseconds are understood too. */
  readonly timestamp?: string
  readonly tolerance?: Duration
  /** `'{body}'`, with a timestamp `'{timestamp}.{body}'`, unless said; or a function. */
  readonly signed?: SignedContent
  readonly answer?: SourceAnswer
}

const KNOWN: ReadonlySet<string> = new Set<keyof HmacOptions>([
  'secret',
  'header',
  'algorithm',
  'encoding',
  'prefix',
  'timestamp',
  'tolerance',
  'signed',
  'answer',
  ...NAMING,
])
const ALGORITHMS: readonly unknown[] = ['sha1', 'sha256', 'sha384', 'sha512'] satisfies Algorithm[]

export function hmac(options: HmacOptions): Source {
  onlyKnown(options, KNOWN, 'hmac: ')
  const { algorithm = 'sha256', encoding = 'hex', prefix = '', answer } = options
  const header = nameOfHeader(options.header, 'header')
  const timestamp = options.timestamp === undefined ? undefined : nameOfHeader(options.timestamp, 'timestamp')
  if (!ALGORITHMS.includes(algorithm)) throw invalid(`algorithm is one of ${ALGORITHMS.join(', ')}.`)
  if (encoding !== 'hex' && encoding !== 'base64') throw invalid("encoding is 'hex' or 'base64'.")
  if (timestamp === undefined && options.tolerance !== undefined)
    throw invalid('tolerance is of a timestamp; name its header.')
  const tolerance = toleranceOf('hmac', options.tolerance)
  const content = signedContent(options.signed, timestamp)
  // Some write their hex in capitals.
  const asWritten = (signature: string): string => (encoding === 'hex' ? signature.toLowerCase() : signature)
  return {
    scheme: 'hmac',
    secrets: secretsOf('hmac', options.secret),
    dedupeFor: timestamp === undefined ? '30d' : '7d',
    ...(timestamp !== undefined && { tolerance }),
    verify: (request, { now, secrets }) => {
      const given = request.headers[header]
      if (given === undefined) return unsigned(header)
      const time = timestamp === undefined ? undefined : secondsOf(request.headers[timestamp])
      if (time === '') return timeFault(time, now, tolerance)
      const parts = content(request)
      if ('code' in parts) return parts
      if (!given.startsWith(prefix)) return FORGED
      const signature = asWritten(given.slice(prefix.length))
      if (!isSigned([signature], parts, secrets, { algorithm, encoding })) return FORGED
      return time === undefined ? undefined : timeFault(time, now, tolerance)
    },
    sender: {
      proof: { kind: 'mac', header, mac: { algorithm, encoding, prefix }, timestamp, content },
      ...typeAt(options),
    },
    events: eventsNamedBy('hmac', options),
    ...(answer !== undefined && { answer }),
  }
}

/** Milliseconds have three digits more. '' if there is none. */
function secondsOf(time: string = ''): string {
  return /^\d{13,15}$/.test(time) ? time.slice(0, -3) : time
}

function nameOfHeader(name: unknown, option: string): string {
  if (typeof name === 'string' && /^[\w-]+$/.test(name)) return name.toLowerCase()
  throw invalid(`${option} is the name of a header, such as 'x-signature'.`)
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `hmac: ${what}`)
}
