// `createFieldRedactor` prepares log fields: it replaces secrets, shortens texts and bounds depth and number of fields.
import { classifyName } from './secret-names.ts'
import { REDACTED, redact } from './redact.ts'

const DEPTH = 4
/** The bound for one entry, over all depths. */
const MAX_FIELDS = 500

export type LogFields = Readonly<Record<string, unknown>>

export type FieldRedactor = (fields: LogFields) => LogFields

interface FieldPosition {
  readonly path: string
  readonly depth: number
  /** Every text below this position is hidden. */
  readonly hidden: boolean
}

/** `createFieldRedactor` also hides the names in `more`, at any depth, and its paths from the top (`user.email`). */
export function createFieldRedactor(more: readonly string[] = []): FieldRedactor {
  const names = new Set(more.map(normalizeName))
  const paths = new Set(more)
  let left = 0
  const value = (what: unknown, at: FieldPosition): unknown => {
    if (left-- <= 0) return '[more]'
    if (typeof what === 'string') return at.hidden ? REDACTED : redact(what)
    if (typeof what === 'bigint' || typeof what === 'symbol') return String(what)
    if (typeof what === 'function') return '[function]'
    if (typeof what !== 'object' || what === null) return what
    if (at.depth >= DEPTH) return '[deeper]'
    if (what instanceof Date) return Number.isNaN(what.getTime()) ? 'Invalid Date' : what.toISOString()
    if (ArrayBuffer.isView(what)) return `[${what.byteLength} bytes]`
    if (Array.isArray(what)) return listOf(what, at)
    if (what instanceof Error) return at.hidden ? REDACTED : toErrorFields(what)
    return fieldsOf(what as LogFields, { ...at, depth: at.depth + 1 })
  }
  const listOf = (list: readonly unknown[], at: FieldPosition): readonly unknown[] => {
    const hidden = at.hidden || (list.length === 2 && isSecretName(list[0]))
    return list.slice(0, left).map((one, index) => {
      const path = `${at.path}.${index}`
      return value(one, { path, depth: at.depth + 1, hidden: hidden && (at.hidden || index > 0) })
    })
  }
  const fieldsOf = (fields: LogFields, at: FieldPosition): LogFields => {
    const clean: [string, unknown][] = []
    for (const [name, what] of Object.entries(fields).slice(0, left)) {
      const path = at.path === '' ? name : `${at.path}.${name}`
      clean.push([name, field(name, what, { ...at, path, hidden: at.hidden || isValueOfSecret(name, fields) })])
    }
    return Object.fromEntries(clean)
  }
  const field = (name: string, what: unknown, at: FieldPosition): unknown => {
    if (names.has(normalizeName(name)) || paths.has(at.path)) return REDACTED
    const secrecy = classifyName(name)
    // Whether a token exists is not secret, so booleans, null and undefined stay.
    if (secrecy === 'whole' && typeof what !== 'boolean' && what !== null && what !== undefined) return REDACTED
    return value(what, { ...at, hidden: at.hidden || secrecy !== 'none' })
  }
  return (fields) => {
    left = MAX_FIELDS
    return fieldsOf(fields, { path: '', depth: 0, hidden: false })
  }
}

function toErrorFields({ name, message, stack }: Error): LogFields {
  return { name, message: redact(message), stack: redact(stack) }
}

/** Headers and variables also come as `{ name, value }`. */
function isValueOfSecret(name: string, { name: named, key }: LogFields): boolean {
  return name === 'value' && (isSecretName(named) || isSecretName(key))
}

function isSecretName(name: unknown): boolean {
  return typeof name === 'string' && /^[\w-]{1,100}$/.test(name) && classifyName(name) !== 'none'
}

/** `apiKey`, `api_key` and `API-KEY` are the same name. */
function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, '')
}
