// Secrets at rest: sealed as the file says, opened by nobody but who has the key, and for nothing but what they were sealed for.
import { createDecipheriv, hash, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/index.ts'
import { masterKeys, Seal } from '../../src/seal.ts'

const OLD = randomBytes(32)
const NEW = randomBytes(32)
const TEXT = Buffer.from('whsec_é👍')
const [old, newer] = [OLD.toString('base64'), NEW.toString('base64')]

/** By the book: version, first 4 bytes of the key's hash, nonce of 12, tag of 16, text. */
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

describe('a seal', () => {
  it('is AES-256-GCM, laid out as it says', () => {
    const seal = new Seal([old])
    expect(openedByHand(seal.seal(TEXT, 'a purpose'), OLD, 'a purpose')).toEqual(TEXT)
    expect(openedByHand(seal.sealAlike(TEXT, 'a purpose'), OLD, 'a purpose')).toEqual(TEXT)
  })

  it('of the year before is opened', () => {
    // Sealed once by hand, under 32 bytes of 7, for 'known'.
    const sealed = Buffer.from('AUuwb47Hx8fHx8fHx8fHx8cMw5XEDNjvr+eUCoirlK713H1Frbo=', 'base64')
    const seal = new Seal([Buffer.alloc(32, 7).toString('base64')])
    expect(codeOf(() => seal.open(sealed, 'known'))).toBe('opened')
    expect(seal.open(sealed, 'known').toString()).toBe('KNOWN')
  })

  it('is another one each time, and the same one where that is asked for', () => {
    const seal = new Seal([old])
    expect(seal.seal(TEXT, 'p')).not.toEqual(seal.seal(TEXT, 'p'))
    expect(seal.sealAlike(TEXT, 'p')).toEqual(seal.sealAlike(TEXT, 'p'))
    // One nonce for two texts would give both away.
    const alike = [seal.sealAlike(TEXT, 'p'), seal.sealAlike(TEXT, 'q'), seal.sealAlike(Buffer.from('x'), 'p')]
    expect(new Set(alike.map(nonce)).size).toBe(3)
  })

  it('holds anything, nothing included', () => {
    const seal = new Seal([old])
    for (const bytes of [Buffer.alloc(0), randomBytes(100_000)]) {
      expect(seal.open(seal.seal(bytes, ''), '')).toEqual(bytes)
    }
  })

  it('is not opened by another key, for another purpose, or after any byte was changed', () => {
    const seal = new Seal([old])
    const sealed = seal.seal(TEXT, 'secret of source a')
    expect(codeOf(() => new Seal([newer]).open(sealed, 'secret of source a'))).toBe('SEAL_UNKNOWN')
    expect(codeOf(() => seal.open(sealed, 'secret of source b'))).toBe('SEAL_UNKNOWN')
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect([at, codeOf(() => seal.open(changed, 'secret of source a'))]).toEqual([at, 'SEAL_UNKNOWN'])
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(codeOf(() => seal.open(sealed.subarray(0, length), 'secret of source a'))).toBe('SEAL_UNKNOWN')
    }
  })

  it('is not opened by a key that merely has the name of the right one', () => {
    const sealed = new Seal([old]).seal(TEXT, 'p')
    hash('sha256', NEW, 'buffer').copy(sealed, 1, 0, 4)
    expect(codeOf(() => new Seal([newer]).open(sealed, 'p'))).toBe('SEAL_UNKNOWN')
  })

  it('is exchanged: the first key seals, all of them open', () => {
    const before = new Seal([old]).seal(TEXT, 'p')
    const both = new Seal([newer, old])
    expect(both.open(before, 'p')).toEqual(TEXT)
    const after = both.seal(TEXT, 'p')
    expect(new Seal([newer]).open(after, 'p')).toEqual(TEXT)
    expect(codeOf(() => new Seal([old]).open(after, 'p'))).toBe('SEAL_UNKNOWN')
  })

  it.each(['', 'short', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64'), OLD.toString('hex')])(
    'is not made with the key %j',
    (key) => expect(codeOf(() => new Seal([key]))).toBe('CONFIG_INVALID'),
  )

  it('is not made without a key', () => {
    expect(new Seal([]).hasKey).toBe(false)
    expect(codeOf(() => new Seal([]).seal(TEXT, 'p'))).toBe('CONFIG_INVALID')
  })
})

describe('to seal anew', () => {
  it('is to seal under the newest key, unless it is so already', () => {
    const [before, both] = [new Seal([old]).seal(TEXT, 'p'), new Seal([newer, old])]
    const after = both.resealed(before, 'p') ?? Buffer.alloc(0)
    expect(new Seal([newer]).open(after, 'p')).toEqual(TEXT)
    expect(both.resealed(after, 'p')).toBeUndefined()
  })

  it('is refused for another purpose, also of what is under the newest key already', () => {
    const both = new Seal([newer, old])
    for (const key of [old, newer])
      expect(codeOf(() => both.resealed(new Seal([key]).seal(TEXT, 'p'), 'q'))).toBe('SEAL_UNKNOWN')
  })
})

describe('master keys', () => {
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
    expect(masterKeys(given, { SLUICE_MASTER_KEY: variable })).toEqual(keys),
  )
})
