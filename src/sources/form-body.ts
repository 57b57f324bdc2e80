// The body of a form as names and values, and as the JSON that handlers get: nobody wants to decode a form in a handler.
import type { ReceivedRequest, Refusal } from '../receive/source.ts'
import type { JsonObject } from './json-body.ts'
import { refusal } from './signature.ts'

/** No form of any provider has a hundred. */
const FIELDS_MAX = 10_000
const AMPERSAND = 0x26

export function isForm({ headers }: ReceivedRequest): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

/** Its fields are counted in the bytes, before anything is made of them (R4). */
export function formOf({ body }: ReceivedRequest): URLSearchParams | Refusal {
  if (hasTooMany(body)) return TOO_MANY
  return new URLSearchParams(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
}

const TOO_MANY: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  `The form has more than ${FIELDS_MAX} fields.`,
  'Look at the body that was sent.',
)

function hasTooMany(body: Uint8Array): boolean {
  let fields = 1
  for (let at = body.indexOf(AMPERSAND); at !== -1; at = body.indexOf(AMPERSAND, at + 1)) {
    if (++fields > FIELDS_MAX) return true
  }
  return false
}

/** In one pass: to ask the form for each name would be to look through all of its fields each time. */
export function valuesByName(form: URLSearchParams): ReadonlyMap<string, readonly string[]> {
  const byName = new Map<string, string[]>()
  for (const [name, value] of form) {
    const values = byName.get(name)
    if (values === undefined) byName.set(name, [value])
    else values.push(value)
  }
  return byName
}

/** What comes once is a text, what comes several times a list. As in JSON bodies, nothing can become the prototype. */
export function fieldsOf(form: URLSearchParams): JsonObject {
  const fields = new Map<string, string | readonly string[]>()
  for (const [name, values] of valuesByName(form)) {
    if (name !== '__proto__') fields.set(name, values.length === 1 && values[0] !== undefined ? values[0] : values)
  }
  return Object.fromEntries(fields)
}
