// Encryption of secrets at rest: the file format is as documented, and only the right key decrypts a text, for its own purpose.
import { createDecipheriv, hash, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/index.ts'
import { parseEncryptionKeys, Keyring } from '../../src/crypto/keyring.ts'

const OLD = randomBytes(32)
const NEW = randomBytes(32)
const TEXT = Buffer.from('whsec_é👍')
const [old, newer] = [OLD.toString('base64'), NEW.toString('base64')]

/** The documented layout: version, first 4 bytes of the key's hash, nonce of 12, tag of 16, text. */
function openedByHand(sealed: Buffer, key: Buffer, purpose: string): Buffer {
  expect(sealed[0]).toBe(1)
  expect(sealed.subarray(1, 5)).toEqual(hash('sha256', key, 'buffer').subarray(0, 4))
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(5, 17), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(sealed.subarray(17, 33))
  return Buffer.concat([decipher.update(sealed.subarray(33)), decipher.final()])
}

function codeOf(open: () => unknown): string {
  try {
    open()
    return 'opened'
  } catch (error) {
    return error instanceof SluiceError ? error.code : String(error)
  }
}

const nonce = (bytes: Buffer): string => bytes.subarray(5, 17).toString('hex')

describe('an encrypted text', () => {
  it('is AES-256-GCM with the documented layout', () => {
    const seal = new Keyring([old])
    expect(openedByHand(seal.encrypt(TEXT, 'a purpose'), OLD, 'a purpose')).toEqual(TEXT)
    expect(openedByHand(seal.encryptDeterministic(TEXT, 'a purpose'), OLD, 'a purpose')).toEqual(TEXT)
  })

  it('of an earlier version is decrypted', () => {
    // Encrypted once by hand, under 32 bytes of 7, for 'known'.
    const sealed = Buffer.from('AUuwb47Hx8fHx8fHx8fHx8cMw5XEDNjvr+eUCoirlK713H1Frbo=', 'base64')
    const seal = new Keyring([Buffer.alloc(32, 7).toString('base64')])
    expect(codeOf(() => seal.decrypt(sealed, 'known'))).toBe('opened')
    expect(seal.decrypt(sealed, 'known').toString()).toBe('KNOWN')
  })

  it('differs each time, or is deterministic on request', () => {
    const seal = new Keyring([old])
    expect(seal.encrypt(TEXT, 'p')).not.toEqual(seal.encrypt(TEXT, 'p'))
    expect(seal.encryptDeterministic(TEXT, 'p')).toEqual(seal.encryptDeterministic(TEXT, 'p'))
    // One nonce for two texts would reveal both.
    const alike = [
      seal.encryptDeterministic(TEXT, 'p'),
      seal.encryptDeterministic(TEXT, 'q'),
      seal.encryptDeterministic(Buffer.from('x'), 'p'),
    ]
    expect(new Set(alike.map(nonce)).size).toBe(3)
  })

  it('can contain anything, also nothing', () => {
    const seal = new Keyring([old])
    for (const bytes of [Buffer.alloc(0), randomBytes(100_000)]) {
      expect(seal.decrypt(seal.encrypt(bytes, ''), '')).toEqual(bytes)
    }
  })

  it('is not decrypted with another key, for another purpose, or after any byte was changed', () => {
    const seal = new Keyring([old])
    const sealed = seal.encrypt(TEXT, 'secret of source a')
    expect(codeOf(() => new Keyring([newer]).decrypt(sealed, 'secret of source a'))).toBe('ENCRYPTION_KEY_UNKNOWN')
    expect(codeOf(() => seal.decrypt(sealed, 'secret of source b'))).toBe('ENCRYPTION_KEY_UNKNOWN')
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect([at, codeOf(() => seal.decrypt(changed, 'secret of source a'))]).toEqual([at, 'ENCRYPTION_KEY_UNKNOWN'])
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(codeOf(() => seal.decrypt(sealed.subarray(0, length), 'secret of source a'))).toBe(
        'ENCRYPTION_KEY_UNKNOWN',
      )
    }
  })

  it('is not decrypted with a key that merely has the same id', () => {
    const sealed = new Keyring([old]).encrypt(TEXT, 'p')
    hash('sha256', NEW, 'buffer').copy(sealed, 1, 0, 4)
    expect(codeOf(() => new Keyring([newer]).decrypt(sealed, 'p'))).toBe('ENCRYPTION_KEY_UNKNOWN')
  })

  it('can be rotated: the first key encrypts, and all of them decrypt', () => {
    const before = new Keyring([old]).encrypt(TEXT, 'p')
    const both = new Keyring([newer, old])
    expect(both.decrypt(before, 'p')).toEqual(TEXT)
    const after = both.encrypt(TEXT, 'p')
    expect(new Keyring([newer]).decrypt(after, 'p')).toEqual(TEXT)
    expect(codeOf(() => new Keyring([old]).decrypt(after, 'p'))).toBe('ENCRYPTION_KEY_UNKNOWN')
  })

  it.each(['', 'short', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64'), OLD.toString('hex')])(
    'rejects the key %j',
    (key) => expect(codeOf(() => new Keyring([key]))).toBe('CONFIG_INVALID'),
  )

  it('needs a key', () => {
    expect(new Keyring([]).hasKey).toBe(false)
    expect(codeOf(() => new Keyring([]).encrypt(TEXT, 'p'))).toBe('CONFIG_INVALID')
  })
})

describe('encrypting again', () => {
  it('uses the newest key, unless the text is under it already', () => {
    const [before, both] = [new Keyring([old]).encrypt(TEXT, 'p'), new Keyring([newer, old])]
    const after = both.reencrypt(before, 'p') ?? Buffer.alloc(0)
    expect(new Keyring([newer]).decrypt(after, 'p')).toEqual(TEXT)
    expect(both.reencrypt(after, 'p')).toBeUndefined()
  })

  it('is rejected for another purpose, even if the text is under the newest key already', () => {
    const both = new Keyring([newer, old])
    for (const key of [old, newer])
      expect(codeOf(() => both.reencrypt(new Keyring([key]).encrypt(TEXT, 'p'), 'q'))).toBe('ENCRYPTION_KEY_UNKNOWN')
  })
})

describe('encryption keys', () => {
  it.each([
    ['one', undefined, 'a', ['a']],
    ['the newest first, with commas between', undefined, 'b,a', ['b', 'a']],
    ['with spaces and a line end', undefined, ' b, a\n', ['b', 'a']],
    ['none', undefined, undefined, []],
    ['nothing in it', undefined, '', []],
    ['what the app says goes before', 'c', 'a', ['c']],
    ['also if it says several', ['d', 'c'], 'a', ['d', 'c']],
    ['or several in one text', 'd,c', 'a', ['d', 'c']],
    ['an empty text is a mistake, and no leave to go without', '', 'a', ['']],
  ] as const)('%s', (_what, given, variable, keys) =>
    expect(parseEncryptionKeys(given, { SLUICE_ENCRYPTION_KEY: variable })).toEqual(keys),
  )
})
