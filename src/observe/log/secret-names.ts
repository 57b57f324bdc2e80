// `classifyName` decides whether a name denotes a secret. Log fields and texts such as `stripeKey=…` share this rule.

/** `Secrecy` says how much to hide: nothing, only texts (a token count is a number and stays), or everything. */
export type Secrecy = 'none' | 'texts' | 'whole'

/** A cheap first check: most names do not match and need no further work. */
const MAYBE_SECRET = /key|tok|sec|pass|pwd|auth|cook|cred|sig|hmac|pem|jwt|bearer|otp|csrf|xsrf|rawheaders/i

/** Matches at the end of the joined words, so spelling and separators do not matter. */
const SECRET_ENDING = /(?:token|secret|password|passwd|passphrase|pwd|signature|authorization|cookie|credentials?)\d*$/
const JOINED_KEY = /(?:api|access|private|secret|signing|encryption|master|shared|ssh)key\d*$/

/** These words are too short, or too common inside other words, to count unless they are the last word. */
const LAST_WORDS: ReadonlySet<string> = toWordSet('pass pem jwt bearer otp totp csrf xsrf hmac sig')
const NAMES: ReadonlySet<string> = toWordSet('auth basicauth rawheaders')

const ANYWHERE = /^(?:token|secret|password|passwd|passphrase|pwd|signature|authorization|cookie|credential)s?$/

/** If the name of a field mentions a secret but ends with one of these words, the field holds metadata, not the secret. */
const METADATA_ENDINGS: ReadonlySet<string> = toWordSet(
  'count counts type kind name names id ids length size age at in on by expires expiry expired ttl lifetime used left limit ' +
    'bucket version algorithm alg format status state valid error reason url uri endpoint path file arn policy',
)

/** If one of these words precedes `key` in a name, the key is an identifier, not a credential. */
const HARMLESS_KEYS: ReadonlySet<string> = toWordSet(
  'lane flow limit tenant event dedupe dedup idempotency primary foreign partition sort range hash index unique ' +
    'composite natural cache object s3 row column field record item entry group routing lookup shard message translation ' +
    'i18n locale map json metric label tag feature flag setting issue project task page parent public by per no each same ' +
    'first last next previous other',
)

export function classifyName(name: string): Secrecy {
  if (!MAYBE_SECRET.test(name)) return 'none'
  const list = splitWords(name)
  const whole = list.join('')
  if (NAMES.has(whole) || SECRET_ENDING.test(whole) || JOINED_KEY.test(whole)) return 'whole'
  const last = list.findLastIndex((word) => !/^v?\d+$/.test(word))
  if (LAST_WORDS.has(list[last] ?? '')) return 'whole'
  const at = list.findLastIndex((word, index) => ANYWHERE.test(word) || isSecretKey(list, index))
  if (at === -1 || METADATA_ENDINGS.has(list[last] ?? '')) return 'none'
  return at === last && !list[at]?.endsWith('s') ? 'whole' : 'texts'
}

/** `key` alone is the key of a lane, so it needs a word before it. */
function isSecretKey(list: readonly string[], at: number): boolean {
  return /^keys?$/.test(list[at] ?? '') && at > 0 && !HARMLESS_KEYS.has(list[at - 1] ?? '')
}

const MAX_NAME = 200

/** `X-APIKey_2` becomes x, api, key, 2. Leading digits are removed: they are the rest of a percent-encoded quote. */
function splitWords(name: string): readonly string[] {
  return name
    .slice(-MAX_NAME)
    .replace(/^\d+/, '')
    .replaceAll(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '')
}

function toWordSet(list: string): ReadonlySet<string> {
  return new Set(list.split(' '))
}
