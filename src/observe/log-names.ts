// Which names say that what they name is a secret: the one rule, for fields and for texts such as `stripeKey=…`.

/** How much is hidden: nothing, texts (a count of tokens is none), or whatever it is. */
export type Secrecy = 'none' | 'texts' | 'whole'

/** Most names have none of these, and need no closer look. */
const PERHAPS = /key|tok|sec|pass|pwd|auth|cook|cred|sig|hmac|pem|jwt|bearer|otp|csrf|xsrf|rawheaders/i

/** At the end of a name, whatever it is joined with and however that is spelled. */
const AT_THE_END = /(?:token|secret|password|passwd|passphrase|pwd|signature|authorization|cookie|credentials?)\d*$/
const JOINED_KEY = /(?:api|access|private|secret|signing|encryption|master|shared|ssh)key\d*$/

/** Too short, or too common within words, to count unless they stand alone. */
const LAST_WORDS: ReadonlySet<string> = words('pass pem jwt bearer otp totp csrf xsrf hmac sig')
const NAMES: ReadonlySet<string> = words('auth basicauth rawheaders')

const ANYWHERE = /^(?:token|secret|password|passwd|passphrase|pwd|signature|authorization|cookie|credential)s?$/

/** What such a name ends with when it is about a secret, and is none. */
const ABOUT: ReadonlySet<string> = words(
  'count counts type kind name names id ids length size age at in on by expires expiry expired ttl lifetime used left limit ' +
    'bucket version algorithm alg format status state valid error reason url uri endpoint path file arn policy',
)

/** Keys that open nothing. */
const HARMLESS_KEYS: ReadonlySet<string> = words(
  'lane flow limit tenant event dedupe dedup idempotency primary foreign partition sort range hash index unique ' +
    'composite natural cache object s3 row column field record item entry group routing lookup shard message translation ' +
    'i18n locale map json metric label tag feature flag setting issue project task page parent public by per no each same ' +
    'first last next previous other',
)

export function secrecyOf(name: string): Secrecy {
  if (!PERHAPS.test(name)) return 'none'
  const list = wordsOf(name)
  const whole = list.join('')
  if (NAMES.has(whole) || AT_THE_END.test(whole) || JOINED_KEY.test(whole)) return 'whole'
  const last = list.findLastIndex((word) => !/^v?\d+$/.test(word))
  if (LAST_WORDS.has(list[last] ?? '')) return 'whole'
  const at = list.findLastIndex((word, index) => ANYWHERE.test(word) || isSecretKey(list, index))
  if (at === -1 || ABOUT.has(list[last] ?? '')) return 'none'
  return at === last && !list[at]?.endsWith('s') ? 'whole' : 'texts'
}

/** `key` alone is a lane's. */
function isSecretKey(list: readonly string[], at: number): boolean {
  return /^keys?$/.test(list[at] ?? '') && at > 0 && !HARMLESS_KEYS.has(list[at - 1] ?? '')
}

const LOOKED_AT = 200

/** `X-APIKey_2` is x, api, key, 2. Digits before it are the rest of what a URL makes of a quote. */
function wordsOf(name: string): readonly string[] {
  return name
    .slice(-LOOKED_AT)
    .replace(/^\d+/, '')
    .replaceAll(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '')
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '))
}
