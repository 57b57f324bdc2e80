// Random URLs from a seed that all mean this machine, or an address close to it.
import { chance, type Chance } from '../../examples/kit/chance.ts'
import { ELSEWHERE, OWN_MACHINE } from './forbidden.ts'

const DOTS = ['.', '.', '.', '.', '。', '．', '｡', '%2e', '%2E']
const WIDE_ZERO = 0xff10

export function fuzzedUrls(n: number, seed: number, port: number): readonly string[] {
  const by = chance(seed)
  return Array.from({ length: n }, () => urlBy(by, port))
}

function one<T>(by: Chance, list: readonly T[]): T {
  return list[by.between(0, list.length - 1)] as T
}

function urlBy(by: Chance, port: number): string {
  const scheme = one(by, [
    'https://',
    'https://',
    'https://',
    'HTTPS://',
    'https:',
    'https:/',
    'https:///',
    'hTTps:\\\\',
  ])
  const user = by.hits(0.1) ? one(by, ['@', 'a@', 'a:b@', 'example.com@', 'example.com%40', '%00@', 'x\\@', ':@']) : ''
  const path = one(by, [
    '',
    '/',
    '/hook',
    '?@example.com',
    '#@example.com',
    '/../..//',
    '\\x',
    '/%2e%2e/',
    ';x',
    '/\u202e',
  ])
  const junk = by.hits(0.05) ? one(by, ['\t', '\n', '\r', ' ', '\u0000', '\u00ad', '\u200b', '\u2060']) : ''
  const text = `${scheme}${user}${hostBy(by)}:${one(by, [port, port, port, `0${port}`, `${port}${junk}`])}${path}`
  const at = by.between(0, text.length)
  return junk === '' ? text : text.slice(0, at) + junk + text.slice(at)
}

function hostBy(by: Chance): string {
  switch (by.between(0, 6)) {
    case 0:
      return dressedUp(by, one(by, OWN_MACHINE))
    case 1:
      return one(by, ELSEWHERE)
    case 2:
      return v6By(by)
    case 3:
      return nameBy(by)
    default:
      return dressedUp(by, v4By(by))
  }
}

/** Writes the same address with a random base per part, and the last parts joined. */
function v4By(by: Chance): string {
  const bytes = one(by, [
    [127, 0, 0, 1],
    [127, by.between(0, 255), by.between(0, 255), by.between(0, 255)],
    [0, 0, 0, 0],
  ])
  const parts = by.between(1, 4)
  const last = bytes.slice(parts - 1).reduce((sum, byte) => sum * 256 + byte, 0)
  const all = [...bytes.slice(0, parts - 1), last].map((value) => numberBy(by, value))
  return all.reduce((text, part) => text + one(by, DOTS) + part)
}

function numberBy(by: Chance, value: number): string {
  const zeros = '0'.repeat(by.hits(0.3) ? by.between(0, 6) : 0)
  switch (by.between(0, 2)) {
    case 0:
      return String(value)
    case 1:
      return `0${zeros}${value.toString(8)}`
    default:
      return `${one(by, ['0x', '0X'])}${zeros}${value.toString(16)}`
  }
}

function v6By(by: Chance): string {
  const v4 = [127, 0, 0, by.between(1, 254)]
  const hex = `7f00:${(v4[3] ?? 1).toString(16)}`
  const head = one(by, [
    '::',
    '::ffff:',
    '::FFFF:',
    '::ffff:0:',
    '64:ff9b::',
    '0:0:0:0:0:ffff:',
    '2002:',
    '2001:0:',
    '64:ff9b:1::',
  ])
  if (head === '2002:' || head === '2001:0:') return `[${head}${hex}::]`
  return one(by, [
    `[${head}${v4.join('.')}]`,
    `[${head}${hex}]`,
    '[::1]',
    `[${'0:'.repeat(7)}1]`,
    '[::]',
    `[::1%25${by.between(1, 9)}]`,
  ])
}

/** Names that the test name server resolves to the address they contain, and internal names. */
function nameBy(by: Chance): string {
  const name = one(by, [
    '127.0.0.1.nip.example',
    'own.example.com',
    'mixed.example.com',
    'localhost',
    'a.localhost',
    'LOCALHOST',
  ])
  return dressedUp(by, name) + (by.hits(0.2) ? '.' : '')
}

function dressedUp(by: Chance, host: string): string {
  if (host.startsWith('[') || by.hits(0.6)) return host
  return Array.from(host, (letter) => {
    if (!/^[0-9a-z]$/i.test(letter) || by.hits(0.5)) return letter
    const code = letter.charCodeAt(0)
    if (by.hits(0.3)) return `%${code.toString(16)}`
    return letter >= '0' && letter <= '9' ? String.fromCodePoint(WIDE_ZERO + Number(letter)) : letter.toUpperCase()
  }).join('')
}

/** The responses of a hostile name server. */
export async function hostileLookup(name: string): Promise<readonly string[]> {
  const inIt = /^(\d+\.\d+\.\d+\.\d+)\.nip\./.exec(name)?.[1]
  if (inIt !== undefined) return [inIt]
  return name.startsWith('mixed') ? ['2606:4700:4700::1111', '::1', '127.0.0.1'] : ['127.0.0.1', '::1']
}
