// What a generic HMAC is computed over: a pattern such as '{timestamp}.{body}', or a function where a pattern cannot say it.
import { SluiceError } from '../errors.ts'
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import { refusal } from './signature.ts'

type Bytes = string | Uint8Array

/** In a pattern: {body}, {timestamp}, {method}, {url}, {path} (with its query) and {header:x-name}. */
export type SignedContent = string | ((request: ReceivedRequest) => Bytes | readonly Bytes[])

type Part = (request: ReceivedRequest) => Bytes | undefined

/** The options are checked once. `timestamp` is the header that has the time, if there is one. */
export function signedContent(
  signed: SignedContent | undefined,
  timestamp: string | undefined,
): (request: ReceivedRequest) => readonly Bytes[] | Refusal {
  if (typeof signed === 'function') return (request) => byFunction(signed, request)
  const pattern = signed ?? (timestamp === undefined ? '{body}' : '{timestamp}.{body}')
  if (typeof pattern !== 'string' || !pattern.includes('{body}')) {
    throw invalid('lacks {body}: anybody who has seen one request could send another body with its signature.')
  }
  if (timestamp !== undefined && !pattern.includes('{timestamp}')) {
    throw invalid('lacks {timestamp}: a time that is not signed proves nothing.')
  }
  const parts = pattern.split(/(\{[^{}]*\})/).map((part) => partOf(part, timestamp))
  return (request) => byPattern(parts, request)
}

function byPattern(parts: readonly Part[], request: ReceivedRequest): readonly Bytes[] | Refusal {
  const content = parts.map((part) => part(request))
  return content.every((bytes) => bytes !== undefined) ? content : LACKING
}

const LACKING: Refusal = refusal(
  'SIGNATURE_MISSING',
  'A header is missing that is signed along.',
  'Compare the option signed of the source with the headers that were sent.',
)

function byFunction(signed: Exclude<SignedContent, string>, request: ReceivedRequest): readonly Bytes[] | Refusal {
  try {
    const content = signed(request)
    return typeof content === 'string' || content instanceof Uint8Array ? [content] : [...content]
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    return refusal('SIGNATURE_WRONG', `The function signed threw: ${what}`, 'Correct the function.')
  }
}

function partOf(part: string, timestamp: string | undefined): Part {
  if (!part.startsWith('{') || !part.endsWith('}')) return () => part
  const name = part.slice(1, -1)
  if (name === 'body') return ({ body }) => body
  if (name === 'method') return ({ method }) => method
  if (name === 'url') return ({ url }) => url.href
  if (name === 'path') return ({ url }) => url.pathname + url.search
  const header = name.startsWith('header:') ? name.slice('header:'.length).toLowerCase() : undefined
  if (header !== undefined && header !== '') return ({ headers }) => headers[header]
  if (name === 'timestamp' && timestamp !== undefined) return ({ headers }) => headers[timestamp]
  if (name === 'timestamp') throw invalid('has {timestamp}; name its header by the option timestamp.')
  throw invalid(`has ${part}; there are {body}, {timestamp}, {method}, {url}, {path} and {header:x-name}.`)
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `hmac: signed ${what}`)
}
