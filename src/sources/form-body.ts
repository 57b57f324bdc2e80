// This file parses a form body into names and values, and into the JSON that handlers get, so that no handler decodes
// forms.
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import type { JsonObject } from './json-body.ts'
import { notUnderstood } from './signature.ts'

/** No form of any provider has a hundred fields. */
const FIELDS_MAX = 10_000
const AMPERSAND = 0x26

export function isForm({ headers }: ReceivedRequest): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

/** `parseForm` counts the fields in the bytes before it parses them (R4). */
export function parseForm({ body }: ReceivedRequest): URLSearchParams | Refusal {
  if (hasTooManyFields(body)) return TOO_MANY
  return new URLSearchParams(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
}

const TOO_MANY: Refusal = notUnderstood(`The form has more than ${FIELDS_MAX} fields.`, 'Check the body that was sent.')

function hasTooManyFields(body: Uint8Array): boolean {
  let fields = 1
  for (let at = body.indexOf(AMPERSAND); at !== -1; at = body.indexOf(AMPERSAND, at + 1)) {
    if (++fields > FIELDS_MAX) return true
  }
  return false
}

/** `valuesByName` needs one pass: a lookup in the form scans all of its fields. */
export function valuesByName(form: URLSearchParams): ReadonlyMap<string, readonly string[]> {
  const byName = new Map<string, string[]>()
  for (const [name, value] of form) {
    const values = byName.get(name)
    if (values === undefined) byName.set(name, [value])
    else values.push(value)
  }
  return byName
}

/** `toFields` returns a text for a name that occurs once, and a list for a repeated name. As in JSON bodies, no
    field can become the prototype. */
export function toFields(form: URLSearchParams): JsonObject {
  const fields = new Map<string, string | readonly string[]>()
  for (const [name, values] of valuesByName(form)) {
    if (name !== '__proto__') fields.set(name, values.length === 1 && values[0] !== undefined ? values[0] : values)
  }
  return Object.fromEntries(fields)
}
