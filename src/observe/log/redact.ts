// `redact` removes from a text what looks like a secret, by its own form or by the name before it.
import { classifyName, type Secrecy } from './secret-names.ts'

export const REDACTED = '[redacted]'
const MAX_TEXT = 2_000
/** Scanned before the text is shortened, so that a secret across the cut is still recognised as a whole. */
const MAX_SCANNED = 8_192
const CUT_MARGIN = 512

/** Each pattern runs in linear time: no two repetitions in one pattern can match the same character. */
const SECRET_PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?/g, REDACTED],
  [/\b(bearer)\s+[\w.~+/=:-]+/gi, `$1 ${REDACTED}`],
  // "A basic mistake" must not match: credentials contain more than lower-case letters.
  [/\b([Bb]asic|BASIC)\s+(?=[a-z]*[\dA-Z+/=])[\w+/=-]{6,}/g, `$1 ${REDACTED}`],
  [/\b(?:whsec|whsk|whpk)_[\w+/=-]+/g, REDACTED],
  [/\b(?:sk|rk|pk)_(?:live|test)_\w+/g, REDACTED],
  [
    /\b(?:sk-[\w-]{16,}|gh[pousr]_\w+|github_pat_\w+|xox[a-z]-[\w-]+|xapp-[\w-]+|glpat-[\w-]+|secret_\w{16,}|ntn_\w+|AKIA[A-Z0-9]{16}|AIza[\w-]{30,})/g,
    REDACTED,
  ],
  // Sluice's own (API keys and endpoint tokens), then those of npm, Hugging Face, Shopify and SendGrid.
  [/\bsl[kt]_[\w-]{16,}/g, REDACTED],
  [/\b(?:npm_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|shp[a-z]{2}_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,})/g, REDACTED],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@?#]+@/gi, `$1${REDACTED}@`],
]

/** `redact` returns the text without what looks like a secret, shortened to 2,000 characters. */
export function redact(text: string): string
export function redact(text: string | undefined): string | undefined
export function redact(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  // The end of a cut text may be half a secret, which no pattern recognises, so a margin is dropped too.
  let clean = text.length > MAX_SCANNED ? text.slice(0, MAX_SCANNED - CUT_MARGIN) : text
  for (const [form, instead] of SECRET_PATTERNS) clean = clean.replace(form, instead)
  clean = redactNamed(redactTagged(clean))
  if (clean.length <= MAX_TEXT && text.length <= MAX_SCANNED) return clean
  return `${clean.slice(0, MAX_TEXT - 1).toWellFormed()}…`
}

function redactTagged(text: string): string {
  return text.replaceAll(/(<([\w:.-]+)(?:\s[^<>]*)?>)[^<]+(?=<\/)/g, (all: string, tag: string, name: string) =>
    classifyName(name) === 'none' ? all : `${tag}${REDACTED}`,
  )
}

/** A quote inside JSON that is itself a JSON text has backslashes before it. */
const QUOTE = String.raw`\\*["'${'`'}]|%22|&quot;|&#34;`
/** A name starts at a word boundary. Otherwise the pattern would try each letter of a long word. */
const NAMED = new RegExp(String.raw`(?<![\w-])([\w-]+)(${QUOTE})?\s{0,4}([:=]{1,3}>?|%3[AD])(?!\/\/)\s{0,4}`, 'gi')
/** Ends at a quote with as many backslashes. A quote with more backslashes belongs to the text. */
const QUOTED = new RegExp(String.raw`(${QUOTE})(?:(?!(?<!\\)\1)[^])*(?:\1)?`, 'iy')
const BARE = /[^\s,;&"'`}\]]+/y
const LINE = /[^\r\n]+/y
const PIECE = new RegExp(String.raw`${QUOTED.source}|\\+|[^]`, 'iy')

function redactNamed(text: string): string {
  let clean = ''
  let from = 0
  NAMED.lastIndex = 0
  for (let named = NAMED.exec(text); named !== null; named = NAMED.exec(text)) {
    const at = NAMED.lastIndex
    const end = findSecretEnd(text, at, named)
    if (end === at) continue
    clean += text.slice(from, at) + REDACTED
    from = end
    NAMED.lastIndex = end
  }
  return clean + text.slice(from)
}

/** Returns where the secret that starts at `at` ends, or `at` itself if no secret starts there. */
function findSecretEnd(
  text: string,
  at: number,
  [, name = '', quote, sign = '']: readonly (string | undefined)[],
): number {
  const secrecy = classifyName(name)
  if (secrecy === 'none') return at
  const quoted = matchEnd(QUOTED, text, at)
  if (quoted > at) return quoted
  if (text[at] === '[' || text[at] === '{') return findStructureEnd(text, at)
  const bare = text.slice(at, matchEnd(BARE, text, at))
  if (/^(?:authorization|proxy-authorization|cookie|set-cookie|x-.*)$/i.test(name)) return matchEnd(LINE, text, at)
  if (isPlainValue(bare, secrecy) || (sign === ':' && quote === undefined && isProse(bare))) return at
  return /signature$/i.test(name) ? matchEnd(LINE, text, at) : at + bare.length
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function findStructureEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at = matchEnd(PIECE, text, at)) {
    if (text[at] === '[' || text[at] === '{') depth += 1
    if (text[at] === ']' || text[at] === '}') depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}

function isPlainValue(bare: string, secrecy: Secrecy): boolean {
  if (/^(?:true|false|null|undefined|none|nil)$/i.test(bare)) return true
  return secrecy === 'texts' && /^-?\d[\d._]*$/.test(bare)
}

/** "token: expired", "secret: 2 of 3": the text after a colon may be a sentence. */
function isProse(bare: string): boolean {
  return /^(?:[a-z'-]{0,11}|\d{1,3})[.!?)]*$/i.test(bare)
}
