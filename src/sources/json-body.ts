// This file parses a request body as bounded JSON. It returns a refusal and never throws.
import { MAX_JSON_DEPTH, isTooDeep } from '../model/event.ts'
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import { notUnderstood } from './signature.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [name: string]: Json | undefined
}

const decoder = new TextDecoder('utf-8', { fatal: true })

export const TOO_DEEP: Refusal = notUnderstood(
  `The JSON is nested deeper than ${MAX_JSON_DEPTH}.`,
  'Send JSON with less nesting.',
)

export const NOT_JSON: Refusal = notUnderstood(
  'The body is not valid JSON.',
  'Check the content type and the body that were sent.',
)

export function parseJson(body: Uint8Array): { readonly value: Json } | Refusal {
  if (isTooDeep(body)) return TOO_DEEP
  try {
    const text = decoder.decode(body)
    return { value: JSON.parse(text, NEEDS_REVIVER.test(text) ? reviveSafely : undefined) as Json }
  } catch {
    return NOT_JSON
  }
}

export function parseJsonObject({ body }: ReceivedRequest): { readonly value: JsonObject } | Refusal {
  const json = parseJson(body)
  if ('code' in json) return json
  if (isObject(json.value)) return { value: json.value }
  return notUnderstood('The body is not a JSON object.', 'Check the body that was sent.')
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `toWord` returns a text or number as text, else undefined. */
export function toWord(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

/** `reviveSafely` drops `__proto__`, which careless copying would turn into the prototype. It keeps an integer that
    a double cannot hold as text: two ids that differ only in the last digits must not become one. */
function reviveSafely(name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (name === '__proto__') return undefined
  const isInexact = typeof value === 'number' && !Number.isSafeInteger(value)
  return isInexact && DIGITS.test(context?.source ?? '') ? context?.source : value
}

const DIGITS = /^-?\d+$/
/** A reviver makes parsing eight times slower. It is used only if the text may contain `__proto__` (plain or
    escaped) or a long integer. */
const NEEDS_REVIVER = /__proto__|\\u00(?:5f|6f|70|72|74)|(?:^|[\s:,[])-?\d{16}/i
