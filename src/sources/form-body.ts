// The body of a form as names and values, and as the JSON that handlers get: nobody wants to decode a form in a handler.
import type { ReceivedRequest } from '../receive/source.ts'
import type { JsonObject } from './json-body.ts'

export function isForm({ headers }: ReceivedRequest): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

export function formOf({ body }: ReceivedRequest): URLSearchParams {
  return new URLSearchParams(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
}

/** What comes once is a text, what comes several times a list. As in JSON bodies, nothing can become the prototype. */
export function fieldsOf(form: URLSearchParams): JsonObject {
  const fields = new Map<string, string | readonly string[]>()
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name)
    if (name !== '__proto__') fields.set(name, values.length === 1 && values[0] !== undefined ? values[0] : values)
  }
  return Object.fromEntries(fields)
}
