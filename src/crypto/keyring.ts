// `Keyring` encrypts secrets at rest with AES-256-GCM, so that a copy of the store alone does not reveal them.
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { SluiceError } from '../errors.ts'

const CIPHER = 'aes-256-gcm'
const KEY_LENGTH = 32
const NONCE_LENGTH = 12
const TAG_LENGTH = 16
const NAME_LENGTH = 4
/** The first byte is the version of the layout: version, name of the key, nonce, tag, ciphertext. */
const VERSION = 1
const HEADER_LENGTH = 1 + NAME_LENGTH + NONCE_LENGTH + TAG_LENGTH

/** The variable that contains the keys, newest first and separated by commas, if the app has no `encryptionKey`. */
export const ENCRYPTION_KEY_VARIABLE: string = 'SLUICE_ENCRYPTION_KEY'
const MISSING_KEY_FIX: string = `Set ${ENCRYPTION_KEY_VARIABLE} to 32 random bytes as base64 (openssl rand -base64 32), or pass encryptionKey to new Sluice.`

/** `missingKey` is the error for an app without a key. `purpose` says what needs the key, e.g. `to rotate it`. */
export function missingKey(
  code: 'CONFIG_INVALID' | 'CONFLICT',
  purpose: string,
  fix: string = MISSING_KEY_FIX,
): SluiceError {
  return new SluiceError(code, `encryptionKey must be set ${purpose}; got nothing.`, undefined, fix)
}

/** `EncryptedDocs` describes one kind of documents that are encrypted or contain encrypted parts. */
export interface EncryptedDocs {
  readonly kind: string
  /**
   * `reencrypt` returns the body encrypted with the newest key, or undefined if nothing needs to change. It throws
   * ENCRYPTION_KEY_UNKNOWN if no key decrypts the body.
   */
  reencrypt(keyring: Keyring, doc: { readonly id: string; readonly body: Uint8Array }): Buffer | undefined
}

interface NamedKey {
  readonly name: Buffer
  readonly key: Buffer
}

export class Keyring {
  readonly #keys: readonly NamedKey[]

  /** The first key encrypts and all of them decrypt, which makes a rotation possible. */
  constructor(keys: readonly string[]) {
    this.#keys = keys.map(parseKey)
  }

  get hasKey(): boolean {
    return this.#keys.length > 0
  }

  /** `keyName` identifies the first key and reveals nothing about it; '' without a key. */
  get keyName(): string {
    return this.#keys[0]?.name.toString('hex') ?? ''
  }

  /** `canDecrypt` returns whether one of the keys encrypted the bytes. */
  canDecrypt(encrypted: Uint8Array): boolean {
    return this.#findKey(encrypted) !== undefined
  }

  /** `encrypt` binds the bytes to `purpose`: they cannot be decrypted for any other purpose. */
  encrypt(bytes: Uint8Array, purpose: string): Buffer {
    return this.#encryptWithNonce(bytes, purpose, () => randomBytes(NONCE_LENGTH))
  }

  /** `encryptDeterministic` maps equal bytes to equal bytes, as L10 needs. An observer learns only which ones are equal. */
  encryptDeterministic(bytes: Uint8Array, purpose: string): Buffer {
    return this.#encryptWithNonce(bytes, purpose, ({ key }) =>
      createHmac('sha256', key).update(`nonce\0${purpose}\0`).update(bytes).digest().subarray(0, NONCE_LENGTH),
    )
  }

  decrypt(encrypted: Uint8Array, purpose: string): Buffer {
    const from = Buffer.from(encrypted.buffer, encrypted.byteOffset, encrypted.length)
    const known = this.#findKey(from)
    if (!looksEncrypted(from) || known === undefined) {
      throw new SluiceError(
        'ENCRYPTION_KEY_UNKNOWN',
        'The value was encrypted with a key that this process does not have.',
      )
    }
    const nonce = from.subarray(1 + NAME_LENGTH, 1 + NAME_LENGTH + NONCE_LENGTH)
    const tag = from.subarray(HEADER_LENGTH - TAG_LENGTH, HEADER_LENGTH)
    const decipher = createDecipheriv(CIPHER, known.key, nonce, { authTagLength: TAG_LENGTH })
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(tag)
    try {
      return Buffer.concat([decipher.update(from.subarray(HEADER_LENGTH)), decipher.final()])
    } catch (error) {
      throw new SluiceError(
        'ENCRYPTION_KEY_UNKNOWN',
        'The value was changed after its encryption, or it was encrypted for another purpose.',
        error,
        'Restore the store from a backup made before the change.',
      )
    }
  }

  /** `reencrypt` returns the bytes encrypted with the newest key, or undefined if that key encrypted them already. */
  reencrypt(encrypted: Uint8Array, purpose: string): Buffer | undefined {
    const bytes = this.decrypt(encrypted, purpose)
    return this.#findKey(encrypted) === this.#keys[0] ? undefined : this.encrypt(bytes, purpose)
  }

  #findKey(encrypted: Uint8Array): NamedKey | undefined {
    const name = encrypted.subarray(1, 1 + NAME_LENGTH)
    return this.#keys.find((key) => key.name.equals(name))
  }

  #encryptWithNonce(bytes: Uint8Array, purpose: string, nonceFor: (key: NamedKey) => Buffer): Buffer {
    const [newest] = this.#keys
    if (newest === undefined) throw missingKey('CONFIG_INVALID', 'to encrypt anything')
    const nonce = nonceFor(newest)
    const cipher = createCipheriv(CIPHER, newest.key, nonce, { authTagLength: TAG_LENGTH })
    cipher.setAAD(Buffer.from(purpose))
    const text = Buffer.concat([cipher.update(bytes), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), newest.name, nonce, cipher.getAuthTag(), text])
  }
}

/**
 * `looksEncrypted` returns whether the bytes have the layout of `encrypt`. Other bytes almost never have it, because no text
 * starts with the version byte.
 */
export function looksEncrypted(bytes: Uint8Array): boolean {
  return bytes[0] === VERSION && bytes.length >= HEADER_LENGTH
}

function parseKey(text: string): NamedKey {
  const key = Buffer.from(text, 'base64')
  if (key.length !== KEY_LENGTH) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `encryptionKey must be 32 random bytes as base64 (44 characters); got ${key.length} bytes.`,
      undefined,
      'Create a key with openssl rand -base64 32, and copy all of it.',
    )
  }
  return { key, name: createHash('sha256').update(key).digest().subarray(0, NAME_LENGTH) }
}

export function parseEncryptionKeys(
  given: string | readonly string[] | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (given !== undefined && !list.every((key) => typeof key === 'string')) {
    // The message must not contain the value, which may be most of a key.
    const got = Array.isArray(given) ? 'a list with another value' : `a value of type ${typeof given}`
    const what = `encryptionKey must be a string or a list of strings; got ${got}.`
    throw new SluiceError('CONFIG_INVALID', what, undefined, MISSING_KEY_FIX)
  }
  if (Array.isArray(given) && given.length === 0) {
    const what = 'encryptionKey must be a string or a list of strings; got an empty list.'
    throw new SluiceError('CONFIG_INVALID', what, undefined, `${MISSING_KEY_FIX} Omit it if nothing is encrypted.`)
  }
  // A given string may also contain several keys, e.g. when it was read from a variable.
  if (given !== undefined) return [given].flat().flatMap((keys) => keys.split(','))
  return (env[ENCRYPTION_KEY_VARIABLE] ?? '').split(/[\s,]+/).filter((key) => key !== '')
}
