// Tests the secrets of endpoints: generated well, rejected when weak, two active for a day, and encrypted for one
// endpoint only.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  decryptConfidential,
  encryptConfidential,
  type ConfidentialFields,
  type EncryptedFields,
} from '../../src/deliver/endpoint-secrets.ts'
import {
  activeSecrets,
  firstSecret,
  keyBytes,
  newSecret,
  rotateSecret,
  secretFault,
  type EndpointSecrets,
} from '../../src/deliver/secrets.ts'
import { Keyring } from '../../src/crypto/keyring.ts'

const NOW = 1_000_000
const DAY = 24 * 3_600_000

test('a generated secret has 32 random bytes', () => {
  const [one, other] = [newSecret(), newSecret()]
  expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(one).not.toBe(other)
  expect(keyBytes(one)).toHaveLength(32)
  expect(secretFault(one)).toBeUndefined()
})

test.each([
  ['shared-secret-key', undefined],
  ['é'.repeat(8), undefined],
  ['fifteen-letters', 'It must have at least 16 bytes; got 15.'],
  ['', 'It must have at least 16 bytes; got 0.'],
  ['x'.repeat(1_025), 'It must have at most 1024 bytes; got 1025.'],
  ['whsec_AAAA', 'It must have at least 16 bytes; got 3.'],
  ['whsec_not base64 at all, I fear', 'The text after whsec_ must be base64.'],
  ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', undefined],
  ['\ud800'.repeat(16), 'It must be a string.'],
])('given %j: %s', (secret, fault) => expect(secretFault(secret)).toBe(fault))

function rotatedOf(secrets: EndpointSecrets, text: string, now: number, force?: boolean): EndpointSecrets {
  const end = rotateSecret(secrets, text, now, force)
  if (end.kind === 'rotating') throw new Error(`It is rotating until ${end.until}.`)
  return end.secrets
}

test('two secrets are active for a day, newest first; then only the newest', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(activeSecrets(secrets, NOW)).toEqual(['two', 'one'])
  expect(activeSecrets(secrets, NOW + DAY - 1)).toEqual(['two', 'one'])
  expect(activeSecrets(secrets, NOW + DAY)).toEqual(['two'])
})

test('force makes the new secret the only one at once, even during a rotation', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  for (const text of ['two', 'three']) {
    const forced = rotatedOf(secrets, text, NOW + 5, true)
    for (const at of [NOW + 5, NOW + 5 + DAY]) expect(activeSecrets(forced, at)).toEqual([text])
    expect(rotateSecret(forced, 'four', NOW + 6).kind).toBe('rotated')
  }
})

test('the same secret again, as after a lost response, changes nothing', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(rotatedOf(secrets, 'two', NOW + 5)).toEqual(secrets)
})

test('a second rotation waits for the end of the first', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(rotateSecret(secrets, 'three', NOW + DAY - 1)).toEqual({ kind: 'rotating', until: NOW + DAY })
  const later = rotatedOf(secrets, 'three', NOW + DAY)
  expect(activeSecrets(later, NOW + DAY)).toEqual(['three', 'two'])
})

test('encrypted secrets reveal nothing and decrypt for their endpoint only', () => {
  const seal = new Keyring([randomBytes(32).toString('base64')])
  const secrets = rotatedOf(firstSecret('the-first-secret-1', 0), newSecret(), NOW)
  const signing = { kind: 'standard' } as const
  const owner = { id: 'ep-1', tenant: 'acme', url: 'https://a.example.com/', signing }
  const what = { secrets, headers: { 'x-key': 'a-password' } }
  const encrypted64 = encryptConfidential(seal, what, owner)
  const sealed = Buffer.from(encrypted64, 'base64')
  for (const text of [...activeSecrets(secrets, NOW), 'x-key', 'a-password']) expect(sealed.includes(text)).toBe(false)
  const opened = (of: Partial<EncryptedFields>): ConfidentialFields =>
    decryptConfidential(seal, { ...owner, ...of, encrypted64, headers: ['x-key'] })
  expect(opened({})).toEqual(what)
  const others = [
    { id: 'ep-2' },
    { tenant: 'other' },
    { id: 'ep-1","acme', tenant: '' },
    { url: 'https://b.example.com/' },
    { signing: { kind: 'bearer' } as const },
  ]
  for (const other of others) expect(() => opened(other)).toThrow('ENCRYPTION_KEY_UNKNOWN')
})

test('a rotation of the encryption key re-encrypts the secrets', () => {
  const [old, newer] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const signing = { kind: 'standard' } as const
  const owner = { id: 'ep-1', tenant: '', url: 'https://a.example.com/', signing, headers: [] }
  const what = { secrets: firstSecret(newSecret(), NOW), headers: {} }
  const both = new Keyring([newer, old])
  const encrypted64 = encryptConfidential(new Keyring([old]), what, owner)
  const again = encryptConfidential(both, decryptConfidential(both, { ...owner, encrypted64 }), owner)
  expect(decryptConfidential(new Keyring([newer]), { ...owner, encrypted64: again })).toEqual(what)
})
