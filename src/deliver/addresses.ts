// Where nothing is ever delivered to: addresses that are not of the public internet, in whatever dress they come (D3).
import { BlockList, isIP } from 'node:net'

/** Everything here is refused at an edge of one address: what a network calls its own is never a subscriber's. */
const FORBIDDEN_V4: readonly string[] = [
  '0.0.0.0/8', // "this" network; 0.0.0.0 is the own machine on most systems
  '10.0.0.0/8',
  '100.64.0.0/10', // shared by carriers; the metadata of Alibaba is in it
  '127.0.0.0/8',
  '168.63.129.16/32', // Azure's own
  '169.254.0.0/16', // link-local; the metadata of most clouds is in it
  '172.16.0.0/12',
  '192.0.0.0/24', // protocol assignments; Oracle's metadata is in it
  '192.0.2.0/24', // documentation, as are the other two
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and the broadcast address
]

/** Only what is global unicast is public; of that, these are not. */
const GLOBAL_V6 = '2000::/3'
const FORBIDDEN_V6: readonly string[] = [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation, as is 3fff
  '2002::/16', // 6to4
  '3ffe::/16', // 6bone, given back
  '3fff::/20',
]

/**
 * IPv6 that means an IPv4 address, which is then the one to be looked at: mapped, and NAT64, by which machines without
 * IPv4 reach all that have nothing else. All other dresses are outside of global unicast or listed above.
 */
const DRESSES_V6: readonly string[] = ['::ffff:', '64:ff9b::']
const DRESS_BITS = 96

const LOOPBACK: BlockList = listOf(['127.0.0.0/8', '::1/128', '::ffff:127.0.0.0/104'])
const GLOBAL: BlockList = listOf([GLOBAL_V6, ...DRESSES_V6.map((dress) => `${dress}0.0.0.0/${DRESS_BITS}`)])
const FORBIDDEN: BlockList = listOf([
  ...FORBIDDEN_V4,
  ...FORBIDDEN_V6,
  ...DRESSES_V6.flatMap((dress) => FORBIDDEN_V4.map((network) => dressed(network, dress))),
])

export interface GuardRules {
  /** For development: the own machine may be reached, and without TLS. */
  readonly allowLoopback?: boolean
}

/** What is no address at all is forbidden too, and so is one with a zone: it has a meaning on one link only. */
export function isForbidden(address: string, { allowLoopback = false }: GuardRules = {}): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return true
  const kind = family === 6 ? 'ipv6' : 'ipv4'
  if (allowLoopback && LOOPBACK.check(address, kind)) return false
  return FORBIDDEN.check(address, kind) || (family === 6 && !GLOBAL.check(address, kind))
}

export type CheckedUrl =
  | { readonly kind: 'fine'; readonly url: URL }
  /** For the eyes of who registers it: nothing in it depends on what our network looks like. */
  | { readonly kind: 'forbidden'; readonly why: string }

export const URL_LENGTH_MAX = 2_048
const NAME_LENGTH_MAX = 253
/** A URL is parsed as browsers do it, who drop or mend these. Whoever writes them wants two readers to see two hosts. */
const MENDED = /[\p{Cc}\p{Cf}\s\\]/u
/** Before the path, the query and the fragment. */
const AT_SIGN = /^[^:]*:\/*[^/?#]*@/
const LOCALHOST = /^(?:.+\.)?localhost$/
/** Names that are answered inside of a network only. */
const INSIDE = /(?:^|\.)(?:localhost|local|localdomain|internal|intranet|lan|corp|home|private|home\.arpa|onion)$/

/** Decimal, octal, hexadecimal, short and full-width spellings are addresses like any other once the URL is parsed. */
export function checkUrl(text: string, rules: GuardRules = {}): CheckedUrl {
  if (text.length > URL_LENGTH_MAX) return forbidden(`It is longer than ${URL_LENGTH_MAX} characters.`)
  if (MENDED.test(text)) return forbidden('It has a space, a backslash or an invisible character.')
  if (!URL.canParse(text)) return forbidden('It is no URL.')
  const url = new URL(text)
  // An empty name and password leave an @ behind in the text, and nothing in what is parsed.
  const why = AT_SIGN.test(text) ? 'It has credentials.' : faultOf(url, rules)
  return why === undefined ? { kind: 'fine', url } : forbidden(why)
}

function faultOf(url: URL, rules: GuardRules): string | undefined {
  const host = hostOf(url)
  const isOwn = rules.allowLoopback === true && isLoopbackHost(host)
  if (url.protocol !== 'https:' && !(isOwn && url.protocol === 'http:')) return 'It does not begin with https://.'
  if (url.port === '0') return 'Its port is 0.'
  if (isIP(host) !== 0) return isForbidden(host, rules) ? 'Its address is not allowed.' : undefined
  if (host.length > NAME_LENGTH_MAX) return `Its host is longer than ${NAME_LENGTH_MAX} characters.`
  if (host.endsWith('.')) return 'Its host ends with a dot.'
  if (isOwn) return undefined
  return !host.includes('.') || INSIDE.test(host) ? 'Its host is not a public name.' : undefined
}

/** Without the brackets that IPv6 has in a URL. */
export function hostOf(url: Pick<URL, 'hostname'>): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** By its spelling: what a name leads to is another matter. */
export function isLoopbackHost(host: string): boolean {
  return isIP(host) === 0 ? LOCALHOST.test(host) : !isForbidden(host, { allowLoopback: true }) && isForbidden(host)
}

function forbidden(why: string): CheckedUrl {
  return { kind: 'forbidden', why }
}

function dressed(network: string, dress: string): string {
  const [address = '', bits] = network.split('/')
  return `${dress}${address}/${DRESS_BITS + Number(bits)}`
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
