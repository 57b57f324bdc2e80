// Makes fields fit to be written: secrets replaced, texts cut, everything of bounded size.
import { secrecyOf } from './log-names.ts'
import { REDACTED, scrubbed } from './log-secrets.ts'

const DEPTH = 4
/** Of one entry, over all depths. */
const FIELDS_MAX = 500

export type Fields = Readonly<Record<string, unknown>>

export type Cleaner = (fields: Fields) => Fields

interface Place {
  readonly path: string
  readonly depth: number
  /** Texts are hidden here, whatever they are. */
  readonly hidden: boolean
}

/** `more`: further names, at any depth, or paths from the top (`user.email`). */
export function cleaner(more: readonly string[] = []): Cleaner {
  const names = new Set(more.map(folded))
  const paths = new Set(more)
  let left = 0
  const value = (what: unknown, at: Place): unknown => {
    if (left-- <= 0) return '[more]'
    if (typeof what === 'string') return at.hidden ? REDACTED : scrubbed(what)
    if (typeof what === 'bigint' || typeof what === 'symbol') return String(what)
    if (typeof what === 'function') return '[function]'
    if (typeof what !== 'object' || what === null) return what
    if (at.depth >= DEPTH) return '[deeper]'
    if (what instanceof Date) return Number.isNaN(what.getTime()) ? 'Invalid Date' : what.toISOString()
    if (ArrayBuffer.isView(what)) return `[${what.byteLength} bytes]`
    if (Array.isArray(what)) return listOf(what, at)
    if (what instanceof Error) return at.hidden ? REDACTED : errorOf(what)
    return fieldsOf(what as Fields, { ...at, depth: at.depth + 1 })
  }
  const listOf = (list: readonly unknown[], at: Place): readonly unknown[] => {
    const hidden = at.hidden || (list.length === 2 && isSecretName(list[0]))
    return list.slice(0, left).map((one, index) => {
      const path = `${at.path}.${index}`
      return value(one, { path, depth: at.depth + 1, hidden: hidden && (at.hidden || index > 0) })
    })
  }
  const fieldsOf = (fields: Fields, at: Place): Fields => {
    const clean: [string, unknown][] = []
    for (const [name, what] of Object.entries(fields).slice(0, left)) {
      const path = at.path === '' ? name : `${at.path}.${name}`
      clean.push([name, field(name, what, { ...at, path, hidden: at.hidden || isValueOfSecret(name, fields) })])
    }
    return Object.fromEntries(clean)
  }
  const field = (name: string, what: unknown, at: Place): unknown => {
    if (names.has(folded(name)) || paths.has(at.path)) return REDACTED
    const secrecy = secrecyOf(name)
    // That there is a token, or none, is no secret.
    if (secrecy === 'whole' && typeof what !== 'boolean' && what !== null && what !== undefined) return REDACTED
    return value(what, { ...at, hidden: at.hidden || secrecy !== 'none' })
  }
  return (fields) => {
    left = FIELDS_MAX
    return fieldsOf(fields, { path: '', depth: 0, hidden: false })
  }
}

function errorOf({ name, message, stack }: Error): Fields {
  return { name, message: scrubbed(message), stack: scrubbed(stack) }
}

/** Headers and variables come as `{ name, value }` as well. */
function isValueOfSecret(name: string, { name: named, key }: Fields): boolean {
  return name === 'value' && (isSecretName(named) || isSecretName(key))
}

function isSecretName(name: unknown): boolean {
  return typeof name === 'string' && /^[\w-]{1,100}$/.test(name) && secrecyOf(name) !== 'none'
}

/** `apiKey`, `api_key` and `API-KEY` are one name. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, '')
}
