// The addresses to which nothing is ever delivered: all that are not on the public internet, in every spelling (D3).
import { BlockList, isIP } from 'node:net'
import { SluiceError } from '../../errors.ts'

/** Each range is rejected as a whole: addresses that a network reserves never belong to a subscriber. */
const FORBIDDEN_V4: readonly string[] = [
  '0.0.0.0/8', // "this" network; 0.0.0.0 is the own machine on most systems
  '10.0.0.0/8',
  '100.64.0.0/10', // shared by carriers; the metadata of Alibaba is in it
  '127.0.0.0/8',
  '168.63.129.16/32', // Azure's own
  '169.254.0.0/16', // link-local; the metadata of most clouds is in it
  '172.16.0.0/12',
  '192.0.0.0/24', // protocol assignments; Oracle's metadata is in it
  '192.0.2.0/24', // documentation, like 198.51.100.0/24 and 203.0.113.0/24
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and the broadcast address
]

/** Only global unicast is public, except for these ranges. */
const GLOBAL_V6 = '2000::/3'
const FORBIDDEN_V6: readonly string[] = [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation, like 3fff::/20
  '2002::/16', // 6to4
  '3ffe::/16', // 6bone, no longer in use
  '3fff::/20',
]

/**
 * IPv6 prefixes that contain an IPv4 address, which is then checked instead: mapped addresses, and NAT64, by which
 * machines without IPv4 reach IPv4 hosts. Every other such form is outside of global unicast or listed above.
 */
const IPV4_IN_V6_PREFIXES: readonly string[] = ['::ffff:', '64:ff9b::']
const IPV4_IN_V6_BITS = 96

const LOOPBACK: BlockList = toBlockList(['127.0.0.0/8', '::1/128', '::ffff:127.0.0.0/104'])
const GLOBAL: BlockList = toBlockList([
  GLOBAL_V6,
  ...IPV4_IN_V6_PREFIXES.map((prefix) => `${prefix}0.0.0.0/${IPV4_IN_V6_BITS}`),
])
const FORBIDDEN: BlockList = toBlockList([
  ...FORBIDDEN_V4,
  ...FORBIDDEN_V6,
  ...IPV4_IN_V6_PREFIXES.flatMap((prefix) => FORBIDDEN_V4.map((network) => embedInV6(network, prefix))),
])

export interface GuardRules {
  /** For development: permits this machine, also without TLS. */
  readonly allowLoopback?: boolean
  /** Networks that the operator denies; checked before everything else. */
  readonly denied?: BlockList
}

/** `isForbidden` also rejects a text that is not an address, and an address with a zone, which only one link knows. */
export function isForbidden(address: string, { allowLoopback = false, denied }: GuardRules = {}): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return true
  const kind = family === 6 ? 'ipv6' : 'ipv4'
  if (denied?.check(address, kind) === true) return true
  if (allowLoopback && LOOPBACK.check(address, kind)) return false
  return FORBIDDEN.check(address, kind) || (family === 6 && !GLOBAL.check(address, kind))
}

export type UrlCheck =
  | { readonly kind: 'fine'; readonly url: URL }
  /** Shown to the person who registers the URL, so it reveals nothing about the internal network. */
  | { readonly kind: 'forbidden'; readonly why: string }

export const URL_LENGTH_MAX = 2_048
const NAME_LENGTH_MAX = 253
/** URL parsers drop or repair these characters. A URL with such characters may show one host to a person and lead a parser to another. */
const AMBIGUOUS_CHARACTERS = /[\p{Cc}\p{Cf}\s\\]/u
/** Before the path, the query and the fragment. */
const AT_SIGN = /^[^:]*:\/*[^/?#]*@/
const LOCALHOST = /^(?:.+\.)?localhost$/
/** Names that resolve inside of a network only. */
const INTERNAL_NAMES =
  /(?:^|\.)(?:localhost|local|localdomain|internal|intranet|lan|corp|home|private|home\.arpa|onion)$/

/** `checkUrl` parses the URL first, which turns octal, hexadecimal, short and full-width addresses into normal ones. */
export function checkUrl(text: string, rules: GuardRules = {}): UrlCheck {
  if (text.length > URL_LENGTH_MAX) return forbidden(`It is longer than ${URL_LENGTH_MAX} characters.`)
  if (AMBIGUOUS_CHARACTERS.test(text)) return forbidden('It has a space, a backslash or an invisible character.')
  if (!URL.canParse(text)) return forbidden('It is not a URL.')
  const url = new URL(text)
  // An empty user and password leave an @ in the text, but nothing in the parsed URL.
  const why = AT_SIGN.test(text) ? 'It has credentials.' : urlFault(url, rules)
  return why === undefined ? { kind: 'fine', url } : forbidden(why)
}

function urlFault(url: URL, rules: GuardRules): string | undefined {
  const host = hostOf(url)
  const isOwn = rules.allowLoopback === true && isLoopbackHost(host)
  if (url.protocol !== 'https:' && !(isOwn && url.protocol === 'http:')) return 'It does not begin with https://.'
  if (url.port === '0') return 'Its port is 0.'
  if (isIP(host) !== 0) return isForbidden(host, rules) ? 'Its address is not allowed.' : undefined
  if (host.length > NAME_LENGTH_MAX) return `Its host is longer than ${NAME_LENGTH_MAX} characters.`
  if (host.endsWith('.')) return 'Its host ends with a dot.'
  if (isOwn) return undefined
  return !host.includes('.') || INTERNAL_NAMES.test(host) ? 'Its host is not a public name.' : undefined
}

/** `hostOf` removes the brackets that IPv6 has in a URL. */
export function hostOf(url: Pick<URL, 'hostname'>): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** `isLoopbackHost` checks the spelling only; the address check decides where a name leads. */
export function isLoopbackHost(host: string): boolean {
  return isIP(host) === 0 ? LOCALHOST.test(host) : !isForbidden(host, { allowLoopback: true }) && isForbidden(host)
}

function forbidden(why: string): UrlCheck {
  return { kind: 'forbidden', why }
}

/** Returns the form in which IPv6 writes an IPv4 network. */
function embedInV6(network: string, prefix: string): string {
  const [address = '', bits = '32'] = network.split('/')
  return `${prefix}${address}/${IPV4_IN_V6_BITS + Number(bits)}`
}

const NETWORK = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i

/** `deniedNetworks` parses the networks that an operator denies: IPv4 and IPv6 in CIDR notation, and single addresses. */
export function deniedNetworks(networks: readonly string[]): BlockList {
  if (!Array.isArray(networks)) throw invalidNetwork(networks)
  return toBlockList((networks as readonly unknown[]).flatMap(parseNetwork))
}

function parseNetwork(network: unknown): readonly string[] {
  const [, address = '', bits] = NETWORK.exec(typeof network === 'string' ? network : '') ?? []
  const family = isIP(address)
  const most = family === 6 ? 128 : 32
  const prefix = bits === undefined ? most : Number(bits)
  if (family === 0 || prefix > most) throw invalidNetwork(network)
  const plain = `${address}/${prefix}`
  return family === 6 ? [plain] : [plain, ...IPV4_IN_V6_PREFIXES.map((form) => embedInV6(plain, form))]
}

function invalidNetwork(got: unknown): SluiceError {
  const rule = 'delivery.deny must be a list of networks or addresses, e.g. 203.0.114.0/24 or 2001:db9::/32'
  return new SluiceError('CONFIG_INVALID', `new Sluice: ${rule}; got ${JSON.stringify(got) ?? typeof got}.`)
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
