// Tests which addresses and URLs are forbidden: the fixture, the edges of every network, and that all others are
// allowed.
import { expect, test } from 'vitest'
import { checkUrl, isForbidden } from '../../src/deliver/http/addresses.ts'
import { ELSEWHERE, forbiddenUrls, OWN_MACHINE } from './forbidden.ts'

test('the fixture has at least 150 spellings, each once', () => {
  const hosts = [...OWN_MACHINE, ...ELSEWHERE]
  expect(hosts.length).toBeGreaterThanOrEqual(150)
  expect(new Set(hosts).size).toBe(hosts.length)
})

test('D3 every forbidden spelling is rejected, with or without allowLoopback', () => {
  const urls = forbiddenUrls(8_443)
  expect(urls.filter((url) => checkUrl(url).kind === 'fine')).toEqual([])
  const elsewhere = ELSEWHERE.map((host) => `https://${host}/`)
  expect(elsewhere.filter((url) => checkUrl(url, { allowLoopback: true }).kind === 'fine')).toEqual([])
})

/** The last address before each network, the first and last one in it, and the first one after it. */
const EDGES: readonly (readonly [string | undefined, string, string, string | undefined])[] = [
  [undefined, '0.0.0.0', '0.255.255.255', '1.0.0.0'],
  ['9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0'],
  ['100.63.255.255', '100.64.0.0', '100.127.255.255', '100.128.0.0'],
  ['126.255.255.255', '127.0.0.0', '127.255.255.255', '128.0.0.0'],
  ['168.63.129.15', '168.63.129.16', '168.63.129.16', '168.63.129.17'],
  ['169.253.255.255', '169.254.0.0', '169.254.255.255', '169.255.0.0'],
  ['172.15.255.255', '172.16.0.0', '172.31.255.255', '172.32.0.0'],
  ['191.255.255.255', '192.0.0.0', '192.0.0.255', '192.0.1.0'],
  ['192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
  ['192.88.98.255', '192.88.99.0', '192.88.99.255', '192.88.100.0'],
  ['192.167.255.255', '192.168.0.0', '192.168.255.255', '192.169.0.0'],
  ['198.17.255.255', '198.18.0.0', '198.19.255.255', '198.20.0.0'],
  ['198.51.99.255', '198.51.100.0', '198.51.100.255', '198.51.101.0'],
  ['203.0.112.255', '203.0.113.0', '203.0.113.255', '203.0.114.0'],
  ['223.255.255.255', '224.0.0.0', '255.255.255.255', undefined],
]

const EDGES_V6: typeof EDGES = [
  [undefined, '::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2000::'],
  ['2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:200::'],
  ['2001:db7:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db9::'],
  ['2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2003::'],
  ['3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3ffe::', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined],
  [undefined, '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', '3fff:1000::'],
  ['3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined],
  ['64:ff9b::808:808', '64:ff9b:0:0:0:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', undefined],
]

test.each([...EDGES, ...EDGES_V6])('%s | %s to %s | %s', (before, first, last, after) => {
  expect([first, last].map((address) => isForbidden(address))).toEqual([true, true])
  const outside = [before, after].filter((address) => address !== undefined)
  expect(outside.filter((address) => isForbidden(address))).toEqual([])
})

test.each(EDGES)('%s | %s to %s | %s, mapped and by NAT64', (before, first, last, after) => {
  for (const dress of ['::ffff:', '64:ff9b::']) {
    expect([first, last].map((address) => isForbidden(dress + address))).toEqual([true, true])
    const outside = [before, after].filter((address) => address !== undefined)
    expect(outside.filter((address) => isForbidden(dress + address))).toEqual([])
  }
})

test.each(['', 'example.com', '8.8.8', '8.8.8.8.', ' 8.8.8.8', '2606:4700::1111%eth0', '[2606:4700::1111]'])(
  '%j is not an address, and is rejected',
  (text) => expect(isForbidden(text)).toBe(true),
)

test('a public URL is allowed in every spelling of its address', () => {
  const urls = [
    'https://example.com/hooks?a=b#c',
    'https://hooks.example.com:8443/',
    'https://8.8.8.8/',
    'https://134744072/',
    'https://[2606:4700:4700::1111]/',
    'https://[::ffff:8.8.8.8]/',
    'https://[64:ff9b::8.8.8.8]/',
    'https://bücher.example/',
    'https://localhost.example.com/',
    'https://10.0.0.1.example.com/',
    'https://example.com/a@b',
  ]
  expect(urls.filter((url) => checkUrl(url).kind !== 'fine')).toEqual([])
})

const may = (url: string): string => checkUrl(url, { allowLoopback: true }).kind

test.each([
  ' https://example.com/',
  'https://exam\tple.com/',
  'https://example.com\\x',
  'https:\\\\example.com/',
  'https://exam\u00adple.com/',
  'https://example.com/\u202e',
  'https://example.com/\n',
])('%j is rejected, because a parser would repair it', (url) => {
  expect(URL.canParse(url)).toBe(true)
  expect(why(url)).toBe('It has a space, a backslash or an invisible character.')
})

test('allowLoopback permits this machine without TLS, and nothing else', () => {
  const own = [
    'http://127.0.0.1:3000/',
    'http://localhost:3000/',
    'http://[::1]/',
    'https://app.localhost/',
    'http://127.1/',
  ]
  expect(own.map(may)).toEqual(own.map(() => 'fine'))
  const others = [
    'http://example.com/',
    'http://10.0.0.1/',
    'http://0.0.0.0/',
    'http://[::]/',
    'http://u@127.0.0.1/',
    'ftp://localhost/',
  ]
  expect(others.map(may)).toEqual(others.map(() => 'forbidden'))
})

function why(url: string): string {
  const checked = checkUrl(url)
  return checked.kind === 'fine' ? '' : checked.why
}

test('the check returns the reason', () => {
  expect(why('http://example.com/')).toBe('It does not begin with https://.')
  expect(why('https://a:b@example.com/')).toBe('It has credentials.')
  expect(why('https://@example.com/')).toBe('It has credentials.')
  expect(why('https://:@example.com/')).toBe('It has credentials.')
  expect(why('https://example.com:0/')).toBe('Its port is 0.')
  expect(why('https://10.0.0.1/')).toBe('Its address is not allowed.')
  expect(why('https://example.com./')).toBe('Its host ends with a dot.')
  expect(why('https://db/')).toBe('Its host is not a public name.')
  expect(why(`https://example.com/${'x'.repeat(3_000)}`)).toBe('It is longer than 2048 characters.')
  expect(why('nonsense')).toBe('It is not a URL.')
})
