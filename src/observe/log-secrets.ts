// Keeps secrets out of what is written down: texts that look like one, and fields whose names say so.

const REDACTED = '[redacted]'
const TEXT_MAX = 2_000
/** Looked at before the cut, so that a secret that lies across it is still seen whole. */
const LOOKED_AT = 8_192
const TORN = 512
const DEPTH = 4
/** Of one entry, over all depths. */
const FIELDS_MAX = 500

const NAMES = 'secret|token|passw(?:or)?d|pwd|api[_-]?key|access[_-]?key|private[_-]?key|credentials?'

/** Each is linear in the text: none has two repetitions that could share a letter. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?/g, REDACTED],
  [
    /\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]{0,40}(?:key|token|secret|signature))("?\s?[:=]\s?)[^\r\n]+/gi,
    `$1$2${REDACTED}`,
  ],
  [/\b(bearer)\s+[\w.~+/=:-]+/gi, `$1 ${REDACTED}`],
  // "A basic mistake" is not one: credentials have more than small letters.
  [/\b([Bb]asic|BASIC)\s+(?=[a-z]*[\dA-Z+/=])[\w+/=-]{6,}/g, `$1 ${REDACTED}`],
  [/\b(?:whsec|whsk|whpk)_[\w+/=-]+/g, REDACTED],
  [/\b(?:sk|rk|pk)_(?:live|test)_\w+/g, REDACTED],
  [
    /\b(?:sk-[\w-]{16,}|gh[pousr]_\w+|github_pat_\w+|xox[a-z]-[\w-]+|xapp-[\w-]+|glpat-[\w-]+|secret_\w{16,}|ntn_\w+|AKIA[A-Z0-9]{16}|AIza[\w-]{30,})/g,
    REDACTED,
  ],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@?#]+@/gi, `$1${REDACTED}@`],
  [new RegExp(`((?:${NAMES})["']?\\s?=\\s?)("[^"]*"?|'[^']*'?|[^\\s,;&"'}\\]]+)`, 'gi'), `$1${REDACTED}`],
  // After a colon there may be prose ("token: expired"): only what is quoted or long is taken for a secret.
  [new RegExp(`((?:${NAMES})["']?\\s?:\\s?)("[^"]*"?|'[^']*'?|[^\\s,;&"'}\\]]{12,})`, 'gi'), `$1${REDACTED}`],
]

/** The text without what looks like a secret, cut at 2,000 characters. */
export function scrubbed(text: string): string
export function scrubbed(text: string | undefined): string | undefined
export function scrubbed(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  // What is torn at the end may be half a secret that no pattern knows any more.
  let clean = text.length > LOOKED_AT ? text.slice(0, LOOKED_AT - TORN) : text
  for (const [secret, instead] of SECRETS) clean = clean.replace(secret, instead)
  if (clean.length <= TEXT_MAX && text.length <= LOOKED_AT) return clean
  return `${clean.slice(0, TEXT_MAX - 1).toWellFormed()}…`
}

const DENIED: readonly string[] = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'password',
  'passwd',
  'pwd',
  'secret',
  'client-secret',
  'webhook-secret',
  'signing-secret',
  'token',
  'access-token',
  'refresh-token',
  'id-token',
  'auth-token',
  'api-key',
  'x-api-key',
  'access-key',
  'secret-key',
  'private-key',
  'credentials',
]

export type Fields = Readonly<Record<string, unknown>>

/** Makes fields fit to be written: denied names and secrets replaced, texts cut, everything of bounded size. */
export type Cleaner = (fields: Fields) => Fields

/** `more`: further names, at any depth, or paths from the top (`user.email`). */
export function cleaner(more: readonly string[] = []): Cleaner {
  const names = new Set([...DENIED, ...more].map(folded))
  const paths = new Set(more)
  let left = 0
  const value = (what: unknown, path: string, depth: number): unknown => {
    if (left-- <= 0) return '[more]'
    if (typeof what === 'string') return scrubbed(what)
    if (typeof what === 'bigint' || typeof what === 'symbol') return String(what)
    if (typeof what === 'function') return '[function]'
    if (typeof what !== 'object' || what === null) return what
    if (depth >= DEPTH) return '[deeper]'
    if (what instanceof Date) return Number.isNaN(what.getTime()) ? 'Invalid Date' : what.toISOString()
    if (ArrayBuffer.isView(what)) return `[${what.byteLength} bytes]`
    if (Array.isArray(what)) return what.slice(0, left).map((one, at) => value(one, `${path}.${at}`, depth + 1))
    if (what instanceof Error) return { name: what.name, message: scrubbed(what.message), stack: scrubbed(what.stack) }
    return fieldsOf(what as Fields, path, depth + 1)
  }
  const fieldsOf = (fields: Fields, above: string, depth: number): Fields => {
    const clean: [string, unknown][] = []
    for (const [name, what] of Object.entries(fields).slice(0, left)) {
      const path = above === '' ? name : `${above}.${name}`
      const isDenied = names.has(folded(name)) || paths.has(path)
      clean.push([name, isDenied ? REDACTED : value(what, path, depth)])
    }
    return Object.fromEntries(clean)
  }
  return (fields) => {
    left = FIELDS_MAX
    return fieldsOf(fields, '', 0)
  }
}

/** `apiKey`, `api_key` and `API-KEY` are one name. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, '')
}
