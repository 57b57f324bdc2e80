// This file defines what a generic HMAC covers: a pattern such as '{timestamp}.{body}', or a function where a pattern
// is not enough.
import { messageOf, SluiceError } from '../errors.ts'
import { invalidOption } from '../validate/options.ts'
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import { refusal } from './signature.ts'

type Bytes = string | Uint8Array

/** A pattern may contain {body}, {timestamp}, {method}, {url}, {path} (with its query) and {header:x-name}. */
export type SignedContent = string | ((request: ReceivedRequest) => Bytes | readonly Bytes[])

type ContentPart = (request: ReceivedRequest) => Bytes | undefined

/** `createSignedContent` checks the options once. `timestamp` is the header with the time, if there is one. */
export function createSignedContent(
  signed: SignedContent | undefined,
  timestamp: string | undefined,
): (request: ReceivedRequest) => readonly Bytes[] | Refusal {
  if (typeof signed === 'function') return (request) => callContentFunction(signed, request)
  const pattern = signed ?? (timestamp === undefined ? '{body}' : '{timestamp}.{body}')
  if (typeof pattern !== 'string' || !pattern.includes('{body}')) {
    throw invalid(
      'must contain {body}: otherwise anybody who has seen one request can send another body with its signature.',
    )
  }
  if (timestamp !== undefined && !pattern.includes('{timestamp}')) {
    throw invalid('must contain {timestamp}: an unsigned time proves nothing.')
  }
  const parts = pattern.split(/(\{[^{}]*\})/).map((part) => parsePart(part, timestamp))
  return (request) => fillPattern(parts, request)
}

function fillPattern(parts: readonly ContentPart[], request: ReceivedRequest): readonly Bytes[] | Refusal {
  const content = parts.map((part) => part(request))
  return content.every((bytes) => bytes !== undefined) ? content : MISSING_HEADER
}

const MISSING_HEADER: Refusal = refusal(
  'SIGNATURE_MISSING',
  'A signed header is missing.',
  'Compare the option signed of the source with the headers that were sent.',
)

function callContentFunction(
  signed: Exclude<SignedContent, string>,
  request: ReceivedRequest,
): readonly Bytes[] | Refusal {
  try {
    const content = signed(request)
    return typeof content === 'string' || content instanceof Uint8Array ? [content] : [...content]
  } catch (error) {
    const what = messageOf(error)
    return refusal('SIGNATURE_WRONG', `The function signed threw: ${what}`, 'Correct the function.')
  }
}

function parsePart(part: string, timestamp: string | undefined): ContentPart {
  if (!part.startsWith('{') || !part.endsWith('}')) return () => part
  const name = part.slice(1, -1)
  if (name === 'body') return ({ body }) => body
  if (name === 'method') return ({ method }) => method
  if (name === 'url') return ({ url }) => url.href
  if (name === 'path') return ({ url }) => url.pathname + url.search
  const header = name.startsWith('header:') ? name.slice('header:'.length).toLowerCase() : undefined
  if (header !== undefined && header !== '') return ({ headers }) => headers[header]
  if (name === 'timestamp' && timestamp !== undefined) return ({ headers }) => headers[timestamp]
  if (name === 'timestamp') throw invalid('contains {timestamp}. Set the option timestamp to its header.')
  throw invalid(`must contain only {body}, {timestamp}, {method}, {url}, {path} and {header:x-name}; got ${part}.`)
}

function invalid(message: string): SluiceError {
  return invalidOption(`hmac: signed ${message}`)
}
