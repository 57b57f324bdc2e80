// The body of a request as JSON, bounded: a source that cannot read it refuses the request and throws nothing.
import { DEPTH_MAX, isTooDeep } from '../model/depth.ts'
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import { refusal } from './signature.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [name: string]: Json | undefined
}

const decoder = new TextDecoder('utf-8', { fatal: true })

export const TOO_DEEP: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  `The JSON is nested deeper than ${DEPTH_MAX}.`,
  'Send it flatter.',
)

export function jsonOf(body: Uint8Array): { readonly value: Json } | Refusal {
  if (isTooDeep(body)) return TOO_DEEP
  try {
    const text = decoder.decode(body)
    return { value: JSON.parse(text, SUSPECT.test(text) ? kept : undefined) as Json }
  } catch {
    return refusal(
      'BODY_NOT_UNDERSTOOD',
      'The body is no JSON.',
      'Look at the content type and the body that were sent.',
    )
  }
}

export function objectOf({ body }: ReceivedRequest): { readonly value: JsonObject } | Refusal {
  const json = jsonOf(body)
  if ('code' in json) return json
  if (isObject(json.value)) return { value: json.value }
  return refusal('BODY_NOT_UNDERSTOOD', 'The body is no JSON object.', 'Look at the body that was sent.')
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text or number as text, else undefined. */
export function wordOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

/**
 * What would be taken for the prototype by whoever copies it carelessly is left out. An integer that no number holds is
 * the text of its digits: two ids that differ only in the last ones must not become one.
 */
function kept(name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (name === '__proto__') return undefined
  const isInexact = typeof value === 'number' && !Number.isSafeInteger(value)
  return isInexact && DIGITS.test(context?.source ?? '') ? context?.source : value
}

const DIGITS = /^-?\d+$/
/** Looking at every value takes eight times as long: it is done only where one of the two can be, written out or escaped. */
const SUSPECT = /__proto__|\\u00(?:5f|6f|70|72|74)|(?:^|[\s:,[])-?\d{16}/i
