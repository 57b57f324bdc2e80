// Secrets of endpoints: made well, refused when weak, two at a time for a day, sealed for one endpoint and no other.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { openConfidential, sealConfidential, type Confidential, type Owner } from '../../src/deliver/confidential.ts'
import {
  activeSecrets,
  firstSecret,
  keyBytes,
  newSecret,
  rotated,
  secretFault,
  type EndpointSecrets,
} from '../../src/deliver/secrets.ts'
import { Seal } from '../../src/seal.ts'

const NOW = 1_000_000
const DAY = 24 * 3_600_000

test('one that we make has 32 bytes of chance', () => {
  const [one, other] = [newSecret(), newSecret()]
  expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(one).not.toBe(other)
  expect(keyBytes(one)).toHaveLength(32)
  expect(secretFault(one)).toBeUndefined()
})

test.each([
  ['shared-secret-key', undefined],
  ['é'.repeat(8), undefined],
  ['fifteen-letters', 'It has 15 bytes; 16 are the least.'],
  ['', 'It has 0 bytes; 16 are the least.'],
  ['x'.repeat(1_025), 'It has 1025 bytes; 1024 are the most.'],
  ['whsec_AAAA', 'It has 3 bytes; 16 are the least.'],
  ['whsec_not base64 at all, I fear', 'What follows whsec_ is no base64.'],
  ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', undefined],
  ['\ud800'.repeat(16), 'It is no text.'],
])('given %j: %s', (secret, fault) => expect(secretFault(secret)).toBe(fault))

function rotatedOf(secrets: EndpointSecrets, text: string, now: number, force?: boolean): EndpointSecrets {
  const end = rotated(secrets, text, now, force)
  if (end.kind === 'rotating') throw new Error(`It is rotating until ${end.until}.`)
  return end.secrets
}

test('two are active for a day, the newest first; then the newest alone', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(activeSecrets(secrets, NOW)).toEqual(['two', 'one'])
  expect(activeSecrets(secrets, NOW + DAY - 1)).toEqual(['two', 'one'])
  expect(activeSecrets(secrets, NOW + DAY)).toEqual(['two'])
})

test('by force the new one is alone at once, also while a rotation is under way', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  for (const text of ['two', 'three']) {
    const forced = rotatedOf(secrets, text, NOW + 5, true)
    for (const at of [NOW + 5, NOW + 5 + DAY]) expect(activeSecrets(forced, at)).toEqual([text])
    expect(rotated(forced, 'four', NOW + 6).kind).toBe('rotated')
  }
})

test('the same one again, as after an answer that was lost, changes nothing', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(rotatedOf(secrets, 'two', NOW + 5)).toEqual(secrets)
})

test('a second rotation waits for the end of the first', () => {
  const secrets = rotatedOf(firstSecret('one', 0), 'two', NOW)
  expect(rotated(secrets, 'three', NOW + DAY - 1)).toEqual({ kind: 'rotating', until: NOW + DAY })
  const later = rotatedOf(secrets, 'three', NOW + DAY)
  expect(activeSecrets(later, NOW + DAY)).toEqual(['three', 'two'])
})

test('sealed: nothing of them is to be read, and they open for their endpoint alone', () => {
  const seal = new Seal([randomBytes(32).toString('base64')])
  const secrets = rotatedOf(firstSecret('the-first-secret-1', 0), newSecret(), NOW)
  const owner = { id: 'ep-1', tenant: 'acme' }
  const what = { secrets, headers: { 'x-key': 'a-password' } }
  const sealed64 = sealConfidential(seal, what, owner)
  const sealed = Buffer.from(sealed64, 'base64')
  for (const text of [...activeSecrets(secrets, NOW), 'x-key', 'a-password']) expect(sealed.includes(text)).toBe(false)
  const opened = (of: Owner): Confidential => openConfidential(seal, { ...of, sealed64, headers: ['x-key'] })
  expect(opened(owner)).toEqual(what)
  const others = [
    { id: 'ep-2', tenant: 'acme' },
    { id: 'ep-1', tenant: 'other' },
    { id: 'ep-1","acme', tenant: '' },
  ]
  for (const other of others) expect(() => opened(other)).toThrow('SEAL_UNKNOWN')
})

test('when the master key is exchanged, what the old one sealed is opened and sealed anew', () => {
  const [old, newer] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const owner = { id: 'ep-1', tenant: '', headers: [] }
  const what = { secrets: firstSecret(newSecret(), NOW), headers: {} }
  const both = new Seal([newer, old])
  const sealed64 = sealConfidential(new Seal([old]), what, owner)
  const again = sealConfidential(both, openConfidential(both, { ...owner, sealed64 }), owner)
  expect(openConfidential(new Seal([newer]), { ...owner, sealed64: again })).toEqual(what)
})
