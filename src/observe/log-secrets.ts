// Keeps out of texts what looks like a secret, by its form or by the name before it.
import { secrecyOf, type Secrecy } from './log-names.ts'

export const REDACTED = '[redacted]'
const TEXT_MAX = 2_000
/** Looked at before the cut, so that a secret that lies across it is still seen whole. */
const LOOKED_AT = 8_192
const TORN = 512

/** Each is linear in the text: none has two repetitions that could share a letter. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?/g, REDACTED],
  [/\b(bearer)\s+[\w.~+/=:-]+/gi, `$1 ${REDACTED}`],
  // "A basic mistake" is not one: credentials have more than small letters.
  [/\b([Bb]asic|BASIC)\s+(?=[a-z]*[\dA-Z+/=])[\w+/=-]{6,}/g, `$1 ${REDACTED}`],
  [/\b(?:whsec|whsk|whpk)_[\w+/=-]+/g, REDACTED],
  [/\b(?:sk|rk|pk)_(?:live|test)_\w+/g, REDACTED],
  [
    /\b(?:sk-[\w-]{16,}|gh[pousr]_\w+|github_pat_\w+|xox[a-z]-[\w-]+|xapp-[\w-]+|glpat-[\w-]+|secret_\w{16,}|ntn_\w+|AKIA[A-Z0-9]{16}|AIza[\w-]{30,})/g,
    REDACTED,
  ],
  // Sluice's own, for the API and of a subscriber; then those of npm, Hugging Face, Shopify and SendGrid.
  [/\bsl[kt]_[\w-]{16,}/g, REDACTED],
  [/\b(?:npm_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|shp[a-z]{2}_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,})/g, REDACTED],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@?#]+@/gi, `$1${REDACTED}@`],
]

/** The text without what looks like a secret, cut at 2,000 characters. */
export function scrubbed(text: string): string
export function scrubbed(text: string | undefined): string | undefined
export function scrubbed(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  // What is torn at the end may be half a secret that no pattern knows any more.
  let clean = text.length > LOOKED_AT ? text.slice(0, LOOKED_AT - TORN) : text
  for (const [form, instead] of FORMS) clean = clean.replace(form, instead)
  clean = withoutNamed(withoutTagged(clean))
  if (clean.length <= TEXT_MAX && text.length <= LOOKED_AT) return clean
  return `${clean.slice(0, TEXT_MAX - 1).toWellFormed()}…`
}

function withoutTagged(text: string): string {
  return text.replaceAll(/(<([\w:.-]+)(?:\s[^<>]*)?>)[^<]+(?=<\/)/g, (all: string, tag: string, name: string) =>
    secrecyOf(name) === 'none' ? all : `${tag}${REDACTED}`,
  )
}

/** A quote in JSON that is itself in a JSON text has backslashes before it. */
const QUOTE = String.raw`\\*["'${'`'}]|%22|&quot;|&#34;`
/** The name begins where a word begins, or a long word would be looked at from each of its letters. */
const NAMED = new RegExp(String.raw`(?<![\w-])([\w-]+)(${QUOTE})?\s{0,4}([:=]{1,3}>?|%3[AD])(?!\/\/)\s{0,4}`, 'gi')
/** Ends at a quote with as many backslashes: one with more is part of the text. */
const QUOTED = new RegExp(String.raw`(${QUOTE})(?:(?!(?<!\\)\1)[^])*(?:\1)?`, 'iy')
const BARE = /[^\s,;&"'`}\]]+/y
const LINE = /[^\r\n]+/y
const PIECE = new RegExp(String.raw`${QUOTED.source}|\\+|[^]`, 'iy')

function withoutNamed(text: string): string {
  let clean = ''
  let from = 0
  NAMED.lastIndex = 0
  for (let named = NAMED.exec(text); named !== null; named = NAMED.exec(text)) {
    const at = NAMED.lastIndex
    const end = secretEnd(text, at, named)
    if (end === at) continue
    clean += text.slice(from, at) + REDACTED
    from = end
    NAMED.lastIndex = end
  }
  return clean + text.slice(from)
}

/** Where the secret ends that begins at `at`; `at` itself if there is none. */
function secretEnd(text: string, at: number, [, name = '', quote, sign = '']: readonly (string | undefined)[]): number {
  const secrecy = secrecyOf(name)
  if (secrecy === 'none') return at
  const quoted = endOf(QUOTED, text, at)
  if (quoted > at) return quoted
  if (text[at] === '[' || text[at] === '{') return structureEnd(text, at)
  const bare = text.slice(at, endOf(BARE, text, at))
  if (/^(?:authorization|proxy-authorization|cookie|set-cookie|x-.*)$/i.test(name)) return endOf(LINE, text, at)
  if (isFigure(bare, secrecy) || (sign === ':' && quote === undefined && isProse(bare))) return at
  return /signature$/i.test(name) ? endOf(LINE, text, at) : at + bare.length
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function structureEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at = endOf(PIECE, text, at)) {
    if (text[at] === '[' || text[at] === '{') depth += 1
    if (text[at] === ']' || text[at] === '}') depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}

function isFigure(bare: string, secrecy: Secrecy): boolean {
  if (/^(?:true|false|null|undefined|none|nil)$/i.test(bare)) return true
  return secrecy === 'texts' && /^-?\d[\d._]*$/.test(bare)
}

/** "token: expired", "secret: 2 of 3": what follows a colon may be a sentence. */
function isProse(bare: string): boolean {
  return /^(?:[a-z'-]{0,11}|\d{1,3})[.!?)]*$/i.test(bare)
}
